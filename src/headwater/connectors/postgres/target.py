"""The table that a sink writes to: which columns it has, whether a stream's rows fit, and how it is made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

import pyarrow as pa

from headwater.data.schema import type_ddl
from headwater.errors import SchemaError

if TYPE_CHECKING:
    from psycopg import sql

    from headwater.connectors.postgres.connection import Connection

_WHOLE: dict[pa.DataType, tuple[int, tuple[str, ...]]] = {
    pa.int8(): (3, ("int2", "int4", "int8")),
    pa.int16(): (5, ("int2", "int4", "int8")),
    pa.int32(): (10, ("int4", "int8")),
    pa.int64(): (19, ("int8",)),
}
"""Of whole numbers: the most digits, and the types that hold them all besides numeric."""
_EXACT: dict[pa.DataType, tuple[str, ...]] = {
    pa.bool_(): ("bool",),
    pa.float32(): ("float4", "float8"),
    pa.float64(): ("float8",),
    pa.binary(): ("bytea",),
    pa.date32(): ("date",),
}
_TIMES: dict[pa.DataType, str] = {
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.timestamp("us"): "timestamp",
    pa.duration("us"): "interval",
}
_TEXTS = "SEIU"
"""Categories of types whose values are given as text: strings, enums, addresses, and others such as uuid."""
_JSON = ("json", "jsonb")
_MICROSECONDS = (-1, 6)
"""What a time's modifier says when it keeps all of its digits."""
_MADE: dict[pa.DataType, LiteralString] = {
    pa.bool_(): "boolean",
    pa.int8(): "smallint",
    pa.int16(): "smallint",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.binary(): "bytea",
    pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamptz",
    pa.timestamp("us"): "timestamp",
    pa.duration("us"): "interval",
    pa.null(): "text",
}

_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, b.typcategory, e.typname, e.typcategory,
       CASE WHEN t.typbasetype = 0 THEN a.atttypmod ELSE t.typtypmod END, a.attgenerated <> '',
       a.attnotnull AND NOT a.atthasdef AND a.attidentity = '', a.attnotnull OR t.typnotnull,
       (SELECT array_agg(enumlabel::text ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = COALESCE(e.oid, b.oid))
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typbasetype = 0 THEN t.oid ELSE t.typbasetype END
LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_UNIQUE = """
SELECT array_agg(a.attname::text)
FROM pg_index i
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
WHERE i.indrelid = %s AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""


@dataclass(frozen=True)
class Column:
    """A column of the table, as the catalog has it."""

    name: str
    shown: str
    """Its type as PostgreSQL writes it."""
    base: str
    """Its type without modifiers; of a domain, the type below it."""
    category: str
    element: str | None
    """Of an array, the type of its elements."""
    element_category: str | None
    modifier: int
    is_generated: bool
    is_required: bool
    """Whether a row must bring a value."""
    is_not_null: bool
    labels: list[str] | None
    """Of an enum, or an array of such, its values."""

    @property
    def is_json(self) -> bool:
        return self.base in _JSON

    def holds(self, dtype: pa.DataType) -> bool:
        """Whether it holds every value of a type as it is."""
        if self.is_generated:
            return False
        if pa.types.is_null(dtype):
            return True
        if self.is_json:
            return bool(pa.types.is_nested(dtype) or dtype == pa.string())
        if pa.types.is_list(dtype):
            return self.element is not None and self._holds(dtype.value_type, self.element, self.element_category or "")
        return self._holds(dtype, self.base, self.category)

    def _holds(self, dtype: pa.DataType, base: str, category: str) -> bool:
        if dtype in _WHOLE:
            digits, types = _WHOLE[dtype]
            return base in types or (base == "numeric" and self._has_room(digits, 0))
        if pa.types.is_decimal(dtype):
            return base == "numeric" and self._has_room(dtype.precision - dtype.scale, dtype.scale)
        if dtype in _TIMES:
            return base == _TIMES[dtype] and self.modifier in _MICROSECONDS
        if dtype == pa.string():
            return category in _TEXTS and base != "bytea"
        return base in _EXACT.get(dtype, ())

    def _has_room(self, before: int, after: int) -> bool:
        """Whether a numeric has so many digits before and after its point; without a modifier it has enough."""
        if self.modifier < 0:
            return True
        precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, (self.modifier - 4) & 0x7FF
        scale = scale - 0x800 if scale & 0x400 else scale  # 11 bits with a sign
        return scale >= after and precision - scale >= before


@dataclass(frozen=True)
class Target:
    """The table: where it is and what it consists of."""

    schema: str
    table: str
    columns: dict[str, Column]
    unique: list[frozenset[str]]
    """The sets of columns in which no two rows are the same."""

    @classmethod
    def find(cls, connection: Connection, name: sql.Identifier) -> Target | None:
        """The table as it is now, if it is there."""
        place = connection.execute(
            "SELECT c.oid, n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
            "WHERE c.oid = to_regclass(%s)",
            [name.as_string(connection)],
        ).fetchone()
        if place is None:
            return None
        oid, schema, table = place
        columns = [Column(*facts) for facts in connection.execute(_COLUMNS, [oid])]
        unique = [frozenset(names) for (names,) in connection.execute(_UNIQUE, [oid])]
        return cls(schema, table, {column.name: column for column in columns}, unique)

    def check(self, step: str, output: str, schema: pa.Schema) -> None:
        """Refuse rows that do not fit."""
        for field in schema:
            column = self.columns.get(field.name)
            if column is None:
                raise SchemaError.does_not_fit(
                    step,
                    f"{output} has no column {field.name!r}; its columns are {', '.join(self.columns)}",
                    "add it, or select the columns that the table has",
                )
            if not column.holds(field.type):
                fact = "generated" if column.is_generated else f"{column.shown}, which does not hold every"
                raise SchemaError.does_not_fit(
                    step,
                    f"column {field.name!r} of {output} is {fact} {type_ddl(field.type)}",
                    "change the column's type, or cast the stream's",
                )
        for column in self.columns.values():
            if column.is_required and column.name not in schema.names:
                raise SchemaError.does_not_fit(
                    step,
                    f"column {column.name!r} of {output} must have a value, and the stream has no such column",
                    "give it a default, or add it to the stream",
                )


def create_statement(name: sql.Identifier, schema: pa.Schema, key: Sequence[str]) -> sql.Composed:
    """What makes a table for these rows, with a key if they have one."""
    from psycopg import sql

    parts = [
        sql.SQL("{} {}{}").format(
            sql.Identifier(field.name), _made_type(field.type), sql.SQL("" if field.nullable else " NOT NULL")
        )
        for field in schema
    ]
    if key:
        parts.append(sql.SQL("PRIMARY KEY ({})").format(sql.SQL(", ").join(map(sql.Identifier, key))))
    return sql.SQL("CREATE TABLE {} ({})").format(name, sql.SQL(", ").join(parts))


def _made_type(dtype: pa.DataType) -> Any:
    from psycopg import sql

    if pa.types.is_decimal(dtype):
        return sql.SQL("numeric({}, {})").format(sql.Literal(dtype.precision), sql.Literal(dtype.scale))
    if pa.types.is_list(dtype) and not pa.types.is_nested(dtype.value_type):
        return sql.SQL("{}[]").format(_made_type(dtype.value_type))
    return sql.SQL("jsonb" if pa.types.is_nested(dtype) else _MADE[dtype])
