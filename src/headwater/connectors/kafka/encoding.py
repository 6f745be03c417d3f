"""Rows as records: key, value, headers and partition of each, encoded in the tasks that make the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.connectors.formats import Format
from headwater.connectors.formats.json_text import json_rows, plain_text
from headwater.data.row_kinds import DELETE, ROW_KIND, UPDATE_BEFORE, Kinds, read_kinds
from headwater.data.rows import decode, make_rows, row_class
from headwater.data.schema import type_ddl
from headwater.errors import GraphError, RowError, SchemaError

Partition = str | Callable[[Any], int | None]
KEY, VALUE, HALF, PARTITION, HEADER = "key", "value", "half", "partition", "header:"
"""The columns of records, of each header its own."""
_ANY = -1
"""A partition that Kafka's partitioner chooses."""


class Record(NamedTuple):
    """What is sent for a row."""

    key: bytes | None
    value: bytes | None
    """None is a tombstone: the key has no value any more."""
    is_half: bool
    """A tombstone for the first half of a change; it is not needed if the key has another record after it."""
    partition: int
    headers: tuple[tuple[str, bytes | None], ...]


def read_records(table: pa.Table) -> list[Record]:
    """The records in a table that `Encoding.encode` gave."""
    named = [
        [(name.removeprefix(HEADER), value) for value in table.column(name).to_pylist()]
        for name in table.column_names
        if name.startswith(HEADER)
    ]
    headers: Sequence[tuple[Any, ...]] = list(zip(*named, strict=True)) if named else [()] * len(table)
    return list(map(Record, *(table.column(name).to_pylist() for name in (KEY, VALUE, HALF, PARTITION)), headers))


@dataclass(frozen=True)
class Encoding:
    """What of a row goes where in a record."""

    format: Format
    key: tuple[str, ...] = ()
    headers: Mapping[str, str] | None = None
    """The columns that hold them, by the headers' names."""
    partition: Partition | None = None
    is_upsert: bool = False

    def __post_init__(self) -> None:
        if self.is_upsert and not self.key:
            raise GraphError.bad_argument("kafka_sink", "needs a key to upsert by", None, "write key='id'")

    def check(self, schema: pa.Schema, step: str) -> None:
        """Refuse, before the job starts, rows that cannot be records."""
        for name in [*self.key, *self._named_apart()]:
            if name not in schema.names:
                raise SchemaError.no_field(name, list(schema.names), step)
        for name in (*self.key, *(self.headers or {}).values()):
            dtype = schema.field(name).type
            if pa.types.is_nested(dtype) and (name not in self.key or len(self.key) == 1):
                raise GraphError.bad_argument(
                    step, f"cannot write column {name!r} as a key or header", type_ddl(dtype), "use a part of it"
                )
        if isinstance(self.partition, str) and not pa.types.is_integer(schema.field(self.partition).type):
            given = f"{self.partition} {type_ddl(schema.field(self.partition).type)}"
            raise GraphError.bad_argument(step, "takes partitions from a column of whole numbers", given, "cast it")
        self._value_columns(schema, step)

    def encode(self, table: pa.Table, step: str) -> pa.Table:
        """The records of rows, as a table that `read_records` reads."""
        kinds = read_kinds(table, step) if self.is_upsert else None
        values: list[bytes | None] = list(self.format.encode(table.select(self._value_columns(table.schema, step))))
        if kinds is not None:
            _refuse_nulls(table, self.key, step)
            values = [
                None if kind in (DELETE, UPDATE_BEFORE) else value for kind, value in zip(kinds, values, strict=True)
            ]
        columns = {
            KEY: pa.array(self._keys(table), pa.binary()),
            VALUE: pa.array(values, pa.binary()),
            HALF: _halves(kinds, len(table)),
            PARTITION: pa.array(self._partitions(table, step), pa.int32()),
        }
        for name, column in (self.headers or {}).items():
            columns[HEADER + name] = pa.array(map(plain_text, _python(table, column)), pa.binary())
        return pa.table(columns)

    def _named_apart(self) -> list[str]:
        return [*(self.headers or {}).values(), *([self.partition] if isinstance(self.partition, str) else [])]

    def _value_columns(self, schema: pa.Schema, step: str) -> list[str]:
        rows = pa.schema([field for field in schema if not (self.is_upsert and field.name == ROW_KIND)])
        return self.format.value_columns(rows, {*self.key, *self._named_apart()}, step)

    def _keys(self, table: pa.Table) -> list[bytes | None]:
        if not self.key:
            return [None] * len(table)
        if len(self.key) == 1:
            return list(map(plain_text, _python(table, self.key[0])))
        return [row.encode() for row in json_rows(table.select(list(self.key)))]

    def _partitions(self, table: pa.Table, step: str) -> list[int]:
        if self.partition is None:
            return [_ANY] * len(table)
        if isinstance(self.partition, str):
            found = table.column(self.partition).to_pylist()
        else:
            rows = make_rows(row_class(tuple(table.column_names)), [decode(column) for column in table.columns])
            found = list(map(self.partition, rows))
        for value in found:
            if value is not None and (type(value) is not int or value < 0):
                raise RowError.value_does_not_fit(step, "partition", value, "a partition", "it is a number from 0 on")
        return [_ANY if value is None else value for value in found]


def _halves(kinds: Kinds | None, count: int) -> pa.Array:
    return pa.array([False] * count) if kinds is None else pa.array(kinds == UPDATE_BEFORE)


def _python(table: pa.Table, column: str) -> list[Any]:
    return decode(table.column(column))


def _refuse_nulls(table: pa.Table, key: Sequence[str], step: str) -> None:
    for name in key:
        if table.column(name).null_count:
            dtype = table.schema.field(name).type
            raise RowError.value_does_not_fit(step, name, None, dtype, "a key to upsert by must not be null")
