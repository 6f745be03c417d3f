"""Types as they are written in CAST: Flink SQL's names, and those of our schemas."""

from __future__ import annotations

from typing import Final, NamedTuple

from sqlglot import exp

from headwater.data.functions.refusals import Refused
from headwater.data.functions.types import MOST_DIGITS, Type, array, decimal, map_of

_SIMPLE: Final = {
    exp.DType.BOOLEAN: "boolean",
    exp.DType.TINYINT: "tinyint",
    exp.DType.SMALLINT: "smallint",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.FLOAT: "float",
    exp.DType.DOUBLE: "double",
    exp.DType.TEXT: "string",
    exp.DType.VARCHAR: "string",
    exp.DType.CHAR: "string",
    exp.DType.VARBINARY: "binary",
    exp.DType.BINARY: "binary",
    exp.DType.DATE: "date",
}
_TIMESTAMPS: Final = {
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPNTZ: "timestamp",
    exp.DType.TIMESTAMPLTZ: "timestamp_ltz",
}
_NAMED: Final = {
    "bytes": "binary",
    "byte": "tinyint",
    "short": "smallint",
    "long": "bigint",
    "integer": "int",
    "timestamp_ltz": "timestamp_ltz",
    "timestamp_ntz": "timestamp",
}


class WrittenType(NamedTuple):
    """A type, and the length of a string if one is given."""

    type: Type
    length: int | None = None
    is_padded: bool = False


def written_type(tree: exp.DataType) -> WrittenType:
    """The type that a CAST names."""
    kind, inside = tree.this, tree.expressions
    if kind == exp.DType.DECIMAL:
        precision, scale = [*_numbers(tree), *[10, 0][len(inside) :]]
        if not (1 <= precision <= MOST_DIGITS and 0 <= scale <= precision):
            raise Refused(f"{tree.sql()} is out of range; precision is 1 to 38, scale 0 to precision")
        return WrittenType(decimal(precision, scale))
    if kind == exp.DType.ARRAY and len(inside) == 1:
        return WrittenType(array(written_type(inside[0]).type))
    if kind == exp.DType.MAP and len(inside) == 2:
        return WrittenType(map_of(written_type(inside[0]).type, written_type(inside[1]).type))
    if kind == exp.DType.STRUCT and inside and all(isinstance(field, exp.ColumnDef) for field in inside):
        parts = tuple(written_type(field.args["kind"]).type for field in inside)
        return WrittenType(Type("row", parts=parts, names=tuple(field.name for field in inside)))
    if kind in _TIMESTAMPS:
        precision = (_numbers(tree) or [6])[0]
        if precision not in (0, 3, 6):
            raise Refused(f"{tree.sql()} is not supported; a timestamp has 0, 3 or 6 places")
        return WrittenType(Type(_TIMESTAMPS[kind], precision))
    if kind == exp.DType.USERDEFINED and str(tree.args.get("kind")).lower() in _NAMED:
        named = _NAMED[str(tree.args["kind"]).lower()]
        return WrittenType(Type(named, 6 if named.startswith("timestamp") else 0))
    if kind in _SIMPLE:
        numbers = _numbers(tree)
        found = Type(_SIMPLE[kind])
        if found.kind == "string":
            is_char = kind == exp.DType.CHAR
            length = numbers[0] if numbers else 1 if is_char else None
            return WrittenType(found, length, is_char)
        if not numbers:
            return WrittenType(found)
    raise Refused(f"type {tree.sql()} is not supported; a row has no such values")


def _numbers(tree: exp.DataType) -> list[int]:
    numbers = [part.name for part in tree.expressions if isinstance(part, exp.DataTypeParam)]
    if not all(number.isdecimal() for number in numbers):
        raise Refused(f"type {tree.sql()} cannot be read: what is in parentheses are numbers")
    return [int(number) for number in numbers]
