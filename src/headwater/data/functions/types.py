"""Types of expressions, as Flink SQL has them: what Arrow says of a column, and the precision of times and intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
APPROXIMATE: Final = ("float", "double")
TIMES: Final = ("date", "timestamp", "timestamp_ltz")
INTERVALS: Final = ("interval day", "interval month")
MOST_DIGITS: Final = 38
_DIGITS: Final = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_DUCKDB: Final = {
    "null": "INTEGER",
    "boolean": "BOOLEAN",
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "VARCHAR",
    "binary": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_ltz": "TIMESTAMPTZ",
    "interval day": "INTERVAL",
    "interval month": "INTERVAL",
}
_ARROW: Final = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "null": pa.null(),
}
_KINDS: Final = {dtype: kind for kind, dtype in _ARROW.items()} | {pa.duration("us"): "interval day"}


@dataclass(frozen=True)
class Type:
    """The type of an expression: its kind, and for some kinds digits, parts and their names."""

    kind: str
    precision: int = 0
    scale: int = 0
    parts: tuple[Type, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def is_integer(self) -> bool:
        return self.kind in INTEGERS

    @property
    def is_approximate(self) -> bool:
        return self.kind in APPROXIMATE

    @property
    def is_decimal(self) -> bool:
        return self.kind == "decimal"

    @property
    def is_exact(self) -> bool:
        return self.is_integer or self.is_decimal

    @property
    def is_number(self) -> bool:
        return self.is_exact or self.is_approximate

    @property
    def is_time(self) -> bool:
        return self.kind in TIMES

    @property
    def is_timestamp(self) -> bool:
        return self.kind in ("timestamp", "timestamp_ltz")

    @property
    def is_null(self) -> bool:
        return self.kind == "null"

    @property
    def item(self) -> Type:
        """The type of an array's items, or of a map's values."""
        return self.parts[-1]

    @property
    def digits(self) -> Type:
        """The decimal that holds every value of this exact type."""
        return self if self.is_decimal else decimal(_DIGITS[self.kind], 0)

    @property
    def duckdb(self) -> str:
        if self.kind == "decimal":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.kind == "array":
            return f"{self.item.duckdb}[]"
        if self.kind == "map":
            return f"MAP({self.parts[0].duckdb}, {self.parts[1].duckdb})"
        if self.kind == "row":
            fields = zip(self.names, self.parts, strict=True)
            return "STRUCT(" + ", ".join(f"{quoted(name)} {part.duckdb}" for name, part in fields) + ")"
        return _DUCKDB[self.kind]

    @property
    def arrow(self) -> pa.DataType | None:
        """The type of a column with such values, or None if there is no such column."""
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        parts = [part.arrow for part in self.parts]
        if None in parts:
            return None
        if self.kind == "array":
            return pa.list_(parts[0])
        if self.kind == "map":
            return pa.map_(parts[0], parts[1])
        if self.kind == "row":
            return pa.struct([pa.field(name, part) for name, part in zip(self.names, parts, strict=True)])
        return _ARROW.get(self.kind)

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.kind in ("array", "map"):
            return f"{self.kind}<{','.join(str(part) for part in self.parts)}>"
        if self.kind == "row":
            return "row<" + ",".join(f"{n} {p}" for n, p in zip(self.names, self.parts, strict=True)) + ">"
        return self.kind


def decimal(precision: int, scale: int) -> Type:
    """DECIMAL(precision, scale)."""
    return Type("decimal", precision, scale)


def fitted_decimal(precision: int, scale: int) -> Type:
    """The decimal of a result: beyond 38 digits the scale gives way, but for six places."""
    if precision <= MOST_DIGITS:
        return decimal(precision, scale)
    return decimal(MOST_DIGITS, max(MOST_DIGITS - (precision - scale), min(scale, 6)))


def array(item: Type) -> Type:
    """An array of items."""
    return Type("array", parts=(item,))


def map_of(key: Type, value: Type) -> Type:
    """A map of keys to values."""
    return Type("map", parts=(key, value))


NULL = Type("null")
BOOLEAN = Type("boolean")
TINYINT, SMALLINT, INT, BIGINT = (Type(kind) for kind in INTEGERS)
FLOAT, DOUBLE = (Type(kind) for kind in APPROXIMATE)
STRING, BINARY, DATE = Type("string"), Type("binary"), Type("date")
TIMESTAMP, TIMESTAMP_LTZ = Type("timestamp", 6), Type("timestamp_ltz", 6)
TIMESTAMP_3, TIMESTAMP_LTZ_3 = Type("timestamp", 3), Type("timestamp_ltz", 3)
DAYS, MONTHS = Type("interval day"), Type("interval month")


def type_of(dtype: pa.DataType) -> Type:
    """The type of a column."""
    if pa.types.is_decimal128(dtype):
        return decimal(dtype.precision, dtype.scale)
    if pa.types.is_list(dtype):
        return array(type_of(dtype.value_type))
    if pa.types.is_map(dtype):
        return map_of(type_of(dtype.key_type), type_of(dtype.item_type))
    if pa.types.is_struct(dtype):
        return Type("row", parts=tuple(type_of(f.type) for f in dtype), names=tuple(f.name for f in dtype))
    kind = _KINDS[dtype]
    return Type(kind, 6) if kind in ("timestamp", "timestamp_ltz") else Type(kind)


def common_type(types: list[Type]) -> Type | None:
    """The type that values of all these types are cast to where they meet, or None: they do not go together."""
    found = NULL
    for other in types:
        if (merged := _merged(found, other)) is None:
            return None
        found = merged
    return found


def compared_type(types: list[Type]) -> Type | None:
    """The type as which values are compared: as `common_type`, and strings with times as times."""
    rest = [dtype for dtype in types if dtype.kind != "string"]
    if len(rest) < len(types) and any(dtype.is_time for dtype in rest):
        return common_type(rest)
    return common_type(types)


def _merged(left: Type, right: Type) -> Type | None:
    if left == right or right.is_null:
        return left
    if left.is_null:
        return right
    if left.is_number and right.is_number:
        return _merged_numbers(left, right)
    if left.is_time and right.is_time:
        if "date" in (left.kind, right.kind):
            return left if right.kind == "date" else right
        kind = "timestamp_ltz" if "timestamp_ltz" in (left.kind, right.kind) else "timestamp"
        return Type(kind, max(left.precision, right.precision))
    if left.kind == right.kind and left.parts and len(left.parts) == len(right.parts):
        parts = [_merged(one, other) for one, other in zip(left.parts, right.parts, strict=True)]
        if None in parts:
            return None
        return Type(left.kind, parts=tuple(p for p in parts if p is not None), names=left.names)
    return None


def _merged_numbers(left: Type, right: Type) -> Type:
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda t: INTEGERS.index(t.kind))
    if left.is_exact and right.is_exact:
        left, right = left.digits, right.digits
        scale = max(left.scale, right.scale)
        return fitted_decimal(max(left.precision - left.scale, right.precision - right.scale) + scale, scale)
    if left.kind == right.kind == "float" or "double" not in (left.kind, right.kind):
        return DOUBLE if left.is_decimal or right.is_decimal else FLOAT
    return DOUBLE


def quoted(name: str) -> str:
    """A name as DuckDB reads it, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def text_of(value: str) -> str:
    """A string as DuckDB reads it, whatever is in it."""
    return "'" + value.replace("'", "''") + "'"
