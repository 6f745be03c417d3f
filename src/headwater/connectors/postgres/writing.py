"""How an epoch's rows get into a table, within a transaction: all of them after those that are there, or one a key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, LiteralString

import numpy as np
import pyarrow as pa

from headwater.connectors.postgres.copy_text import ToText, as_text, csv_lines, to_text
from headwater.connectors.postgres.target import Column
from headwater.data.row_kinds import adds, read_kinds

if TYPE_CHECKING:
    from psycopg import sql

    from headwater.connectors.postgres.connection import Connection

Fields = Sequence[tuple[pa.Field, Column]]
_PIECE_ROWS = 20_000
"""Rows that are text at a time."""


class Writing(ABC):
    """Writes tables of rows, in order."""

    def __init__(self, target: sql.Identifier, fields: Fields) -> None:
        self._target = target
        self._fields: dict[str, ToText] = {field.name: to_text(field.type, column) for field, column in fields}

    @abstractmethod
    def write(self, connection: Connection, tables: Iterable[pa.Table]) -> None:
        """Write an epoch's rows."""

    def _copy(self, connection: Connection, into: sql.Identifier, names: list[str], tables: Iterable[pa.Table]) -> None:
        from psycopg import sql

        columns = sql.SQL(", ").join(map(sql.Identifier, names))
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, ENCODING 'UTF8')").format(into, columns)
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for table in tables:
                for batch in table.select(names).to_batches(max_chunksize=_PIECE_ROWS):
                    texts = [self._fields[name](batch.column(name)) for name in names]
                    copy.write(csv_lines(texts))


class Append(Writing):
    """COPY into the table."""

    def write(self, connection: Connection, tables: Iterable[pa.Table]) -> None:
        self._copy(connection, self._target, list(self._fields), tables)


_AT, _STAYS = "__at", "__stays"
"""Where a row stands in the epoch, and whether its key has a row after it. No field of a stream is called so."""
_MAKE = """
CREATE TEMPORARY TABLE {rows} ON COMMIT DROP AS
SELECT {names}, 0::bigint AS {at}, true AS {stays} FROM {target} WITH NO DATA
"""
_DELETE = """
DELETE FROM {target} AS old USING (SELECT DISTINCT ON ({key}) {key}, {stays} FROM {rows} ORDER BY {key}, {at} DESC) AS new
WHERE NOT new.{stays} AND {same}
"""
_INSERT = """
INSERT INTO {target} ({names})
SELECT {names} FROM (SELECT DISTINCT ON ({key}) {names}, {stays} FROM {rows} ORDER BY {key}, {at} DESC) AS new
WHERE new.{stays} ON CONFLICT ({key}) DO {change}
"""


class Upsert(Writing):
    """COPY into a temporary table; then of each key's rows the last counts: it is written over the old one, or deletes it.

    Which keys are the same, the database says. The first half of a change, '-U', is a deletion unless the other half
    follows: then that is the last. Deletions come first, so that what they give up in other unique columns is free.
    """

    def __init__(self, step: str, target: sql.Identifier, fields: Fields, key: Sequence[str]) -> None:
        from psycopg import sql

        super().__init__(target, fields)
        self._step, self._key = step, list(key)
        names, rows = list(self._fields), sql.Identifier("pg_temp", "headwater_rows")
        self._fields |= {_AT: as_text, _STAYS: as_text}
        self._rows = rows
        self._parts: dict[str, sql.Composable] = {
            "target": target,
            "rows": rows,
            "names": _listed(names),
            "key": _listed(self._key),
            "at": sql.Identifier(_AT),
            "stays": sql.Identifier(_STAYS),
            "same": _for_each("old.{0} = new.{0}", self._key, " AND "),
            "change": _change([name for name in names if name not in self._key]),
        }

    def write(self, connection: Connection, tables: Iterable[pa.Table]) -> None:
        from psycopg import sql

        connection.execute(sql.SQL(_MAKE).format(**self._parts))
        self._copy(connection, self._rows, list(self._fields), self._numbered(tables))
        connection.execute(sql.SQL(_DELETE).format(**self._parts))
        connection.execute(sql.SQL(_INSERT).format(**self._parts))

    def _numbered(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        count = 0
        for table in tables:
            stays = pa.array(adds(read_kinds(table, self._step)))
            at = pa.array(np.arange(count, count + len(table)))
            yield table.append_column(_AT, at).append_column(_STAYS, stays)
            count += len(table)


def _change(names: list[str]) -> sql.Composable:
    """What is done with a row that is there: it gets the new values, if there are any besides its key."""
    from psycopg import sql

    if not names:
        return sql.SQL("NOTHING")
    return sql.SQL("UPDATE SET {}").format(_for_each("{0} = excluded.{0}", names, ", "))


def _listed(names: list[str]) -> sql.Composable:
    return _for_each("{0}", names, ", ")


def _for_each(text: LiteralString, names: list[str], between: LiteralString) -> sql.Composable:
    from psycopg import sql

    return sql.SQL(between).join(sql.SQL(text).format(sql.Identifier(name)) for name in names)
