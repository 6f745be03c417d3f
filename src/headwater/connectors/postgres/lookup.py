"""PostgreSQL tables for lookups: one query for all keys of a batch, or the whole table at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from headwater.connectors.postgres.connection import Address, AddressError, load_psycopg, table_name
from headwater.data.schema import Schema, SchemaLike, type_ddl
from headwater.errors import GraphError, SchemaError, SourceError
from headwater.lookups import Lookup, LookupTable

if TYPE_CHECKING:
    import psycopg
    from psycopg import sql

    from headwater.connectors.postgres.connection import Connection

T = TypeVar("T")
_PIECE_ROWS = 50_000
"""Rows fetched at a time when a whole table is loaded."""
_READ_AS: dict[pa.DataType, tuple[str, ...]] = {
    pa.bool_(): ("bool",),
    pa.int16(): ("int2",),
    pa.int32(): ("int2", "int4"),
    pa.int64(): ("int2", "int4", "int8"),
    pa.float32(): ("float4",),
    pa.float64(): ("float4", "float8"),
    pa.binary(): ("bytea",),
    pa.date32(): ("date",),
    pa.timestamp("us", "UTC"): ("timestamptz",),
    pa.timestamp("us"): ("timestamp",),
}
"""Which types of PostgreSQL's can be read as a type without changing a value. A string takes any, as text."""
_DECIMAL = ("numeric", "int2", "int4", "int8")


class PostgresTable(LookupTable):
    """A table or view of a PostgreSQL database, for `lookup_join`, with the columns of it that the job may use.

    `connection` is a conninfo string or a postgresql:// address, which travels with the plan, password and all; or
    'env:NAME', where each worker finds it in its environment. `table` may be 'schema.table'.
    """

    def __init__(self, connection: str, table: str, schema: SchemaLike) -> None:
        self._address = Address(connection, "PostgresTable")
        self._table, self._name = table, table_name(table, "PostgresTable")
        self.schema = Schema.of(schema)
        for field in self.schema.arrow:
            if not _is_read(field.type):
                raise GraphError.bad_argument(
                    "PostgresTable",
                    f"cannot read column {field.name!r} as it is declared",
                    type_ddl(field.type),
                    "declare it as string to get its text",
                )

    def __repr__(self) -> str:
        return f"PostgresTable({self.describe()})"

    def describe(self) -> str:
        return f"PostgreSQL table {self._table} at {self._address.place}"

    def open(self, step: str, keys: Sequence[str], columns: Sequence[str]) -> PostgresLookup:
        return PostgresLookup(self, step, keys, columns)


class PostgresLookup(Lookup):
    """A connection of one place, opened when it is needed, and again when the server has closed it."""

    def __init__(self, table: PostgresTable, step: str, keys: Sequence[str], columns: Sequence[str]) -> None:
        self._table, self._step = table, step
        self._keys, self._columns = list(keys), list(columns)
        self._connection: Connection | None = None
        self._find: sql.Composed | None = None

    def find(self, keys: Sequence[Any]) -> list[Sequence[Any]]:
        values = [list(column) for column in zip(*keys, strict=True)] if len(self._keys) > 1 else [list(keys)]
        found: list[list[Any]] = [[] for _ in keys]
        for number, *row in self._ask(lambda connection: self._matches(connection, values)):
            found[number - 1].append(tuple(row))
        return list(found)

    def load(self) -> Iterator[list[Any]]:
        return iter(self._ask(lambda connection: list(self._pieces(connection))))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        self._find = None
        if connection is not None:
            connection.close()

    def _matches(self, connection: Connection, values: list[list[Any]]) -> list[tuple[Any, ...]]:
        if self._find is None:
            self._find = self._find_query(connection)
        return connection.execute(self._find, values).fetchall()

    def _pieces(self, connection: Connection) -> Iterator[list[Any]]:
        from psycopg import sql

        columns = list(dict.fromkeys([*self._keys, *self._columns]))
        query = sql.SQL("SELECT {columns} FROM {table} ORDER BY {order}").format(
            columns=sql.SQL(", ").join(map(self._selected, columns)),
            table=self._table._name,
            order=_numbers(len(columns)),
        )
        with connection.transaction(), connection.cursor("headwater_load") as cursor:
            cursor.execute(query)
            while piece := cursor.fetchmany(_PIECE_ROWS):
                yield piece

    def _find_query(self, connection: Connection) -> sql.Composed:
        """The matches of every key by its number, found by the server, whose idea of equality counts."""
        from psycopg import sql

        key_types = self._key_types(connection)
        names = [sql.Identifier(f"key{n}") for n in range(len(self._keys))]
        query = sql.SQL(
            "SELECT asked.number, {columns} FROM unnest({keys}) WITH ORDINALITY AS asked({names}, number) "
            "JOIN {table} AS found ON {same} ORDER BY {order}"
        )
        return query.format(
            columns=sql.SQL(", ").join(self._selected(name, sql.SQL("found.")) for name in self._columns),
            keys=sql.SQL(", ").join(sql.SQL("%s::" + key_type + "[]") for key_type in key_types),
            names=sql.SQL(", ").join(names),
            table=self._table._name,
            same=sql.SQL(" AND ").join(
                sql.SQL("found.{} = asked.{}").format(sql.Identifier(key), name)
                for key, name in zip(self._keys, names, strict=True)
            ),
            order=_numbers(1 + len(self._columns)),
        )

    def _key_types(self, connection: Connection) -> list[Any]:
        """What PostgreSQL calls the types of the key columns, as it writes them itself, quotes and all."""
        from psycopg import sql

        names = [sql.Identifier(key) for key in self._keys]
        query = sql.SQL("SELECT {} FROM {} LIMIT 0").format(sql.SQL(", ").join(names), self._table._name)
        oids = [column.type_code for column in connection.execute(query).description or ()]
        asked = "SELECT format_type(oid, -1) FROM unnest(%s::oid[]) WITH ORDINALITY AS t(oid, n) ORDER BY n"
        return [name for (name,) in connection.execute(asked, [oids])]

    def _selected(self, name: str, of: sql.SQL | None = None) -> sql.Composable:
        from psycopg import sql

        column = (of or sql.SQL("")) + sql.Identifier(name)
        dtype = self._table.schema.field(name).type
        return column + sql.SQL("::text" if dtype == pa.string() else "::text[]" if _is_texts(dtype) else "")

    def _ask(self, work: Callable[[Connection], T]) -> T:
        """Do something with the connection; if one from earlier turns out to be gone, with a new one."""
        psycopg = load_psycopg("PostgresTable")
        try:
            if self._connection is not None:
                try:
                    return work(self._connection)
                except psycopg.OperationalError:  # what counts is whether a new connection works
                    self.close()
            return work(self._connected())
        except AddressError as error:
            raise self._unreadable(error.why, error.action) from None
        except psycopg.Error as error:
            self.close()
            raise self._failed(error, is_server=isinstance(error, psycopg.OperationalError)) from None

    def _connected(self) -> Connection:
        connection = self._table._address.connect()
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        return connection

    def _check(self, connection: Connection) -> None:
        """Refuse columns that cannot be read as they are declared."""
        from psycopg import sql

        names = [*self._keys, *self._columns]
        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        described = connection.execute(
            sql.SQL("SELECT {} FROM {} LIMIT 0").format(columns, self._table._name)
        ).description
        for name, column in zip(names, described or (), strict=True):
            dtype = self._table.schema.field(name).type
            if dtype != pa.string() and not _is_texts(dtype) and column.type_code not in _oids(dtype):
                raise SchemaError.does_not_fit(
                    self._step,
                    f"column {name!r} of {self._table.describe()} is {column.type_display}, "
                    f"which cannot be read as {type_ddl(dtype)}",
                    "declare a type that holds all its values, or string",
                )

    def _failed(self, error: psycopg.Error, *, is_server: bool) -> SourceError:
        if is_server:
            return self._unreadable(
                self._table._address.why(error), "see that the server runs and answers, and start the job again"
            )
        return self._unreadable(self._table._address.why(error), "mend the table, or its declaration in the job")

    def _unreadable(self, problem: str, action: str) -> SourceError:
        return SourceError.at_step(self._step, f"{self._table.describe()} cannot be read: {problem}", action)


def _numbers(count: int) -> sql.Composed:
    from psycopg import sql

    return sql.SQL(", ").join(sql.SQL(str(n + 1)) for n in range(count))


def _is_read(dtype: pa.DataType) -> bool:
    if pa.types.is_list(dtype):
        return not pa.types.is_list(dtype.value_type) and _is_read(dtype.value_type)
    return dtype in _READ_AS or dtype == pa.string() or pa.types.is_decimal(dtype)


def _is_texts(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) and dtype.value_type == pa.string())


def _oids(dtype: pa.DataType) -> set[int]:
    """The types of PostgreSQL's, by their numbers, that can be read as this one."""
    from psycopg.postgres import types

    inner = dtype.value_type if pa.types.is_list(dtype) else dtype
    known = [types[name] for name in (_DECIMAL if pa.types.is_decimal(inner) else _READ_AS[inner])]
    return {info.array_oid if inner is not dtype else info.oid for info in known}
