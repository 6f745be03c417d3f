"""Tables that users give for state: as Arrow, in the columns and types of the state, and refused where they do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.rows import encode_rows
from headwater.data.schema import type_ddl
from headwater.errors import HeadwaterError, SchemaError
from headwater.expiry import WRITTEN
from headwater.operators.grouping import group
from headwater.operators.join.keys import COMPUTED_KEY
from headwater.savepoints.errors import Impossible, SavepointError
from headwater.savepoints.evolution import Evolution
from headwater.savepoints.files import as_puts, entries_of, state_schema
from headwater.state.handles.broadcast import ALL_KEYS, OneForAll
from headwater.state.handles.operator_lists import Evenly, ToAll
from headwater.state.spread import Spread
from headwater.state.table import StateTable, sorted_by_key

_ENTRY = ("entry", "index", "timestamp")
"""The columns that, with the key, tell the entries of a state by key apart."""
_COUNTED = ("index", "registration")
"""The columns of such a state that may be left out: rows are numbered as they come."""
_SLICES = "slices"
"""The state in which windows keep one row for each slice, run and key."""


_SHARED_KEYS: dict[type[Spread], str | None] = {OneForAll: ALL_KEYS, Evenly: None, ToAll: None}
"""The key of all entries, where state belongs to no key."""


def as_state(given: Any, into: StateTable, step: str, state: str) -> pa.Table:
    """The rows as changes of an empty state. What may be left out is filled in; what cannot be right is refused."""
    return _Given(into, step, state).puts(given)


class _Given:
    """A table on its way into a state."""

    def __init__(self, into: StateTable, step: str, state: str) -> None:
        self._place, self._where = (step, state), f"{step}, state {state!r}"
        self._stored = into.dump().schema
        self._schema = state_schema(self._stored)
        self._is_by_key = self._stored.names[0] == "op"
        """Whether it is a state by key, not one of rows, whose columns may have any name."""
        self._slice_key = ["@slice", "@run", *into.spread.key]
        self._shared_key = _SHARED_KEYS.get(type(into.spread))
        self._optional = {name for name in self._schema.names if name in _COUNTED and self._is_by_key}
        self._times = {time.name for time in WRITTEN.values()} & set(self._schema.names) if self._is_by_key else set()
        self._optional |= self._times
        if type(into.spread) in _SHARED_KEYS:
            self._optional.add("key")

    def puts(self, given: Any) -> pa.Table:
        table = self._complete(entries_of(self._arrow(given)))
        try:
            table = Evolution().table(_plain(table), self._schema)
        except (Impossible, pa.ArrowException) as error:
            raise self._refused(f"{error}") from None
        self._check_nulls(table)
        self._check_twice(table)
        return as_puts(self._in_order(table), self._stored)

    def _in_order(self, table: pa.Table) -> pa.Table:
        """The rows of a list by their index, and rows that have come by their number."""
        number = "index" if self._is_by_key else "@id"
        if number in table.column_names:
            table = table.take(pa.array(np.argsort(table[number].to_numpy(), kind="stable")))
        return sorted_by_key(table) if self._is_by_key else table

    def _arrow(self, given: Any) -> pa.Table:
        for method in ("toArrow", "to_arrow"):  # a DataFrame of Spark, and of others
            if hasattr(given, method):
                given = getattr(given, method)()
        if isinstance(given, pa.RecordBatch):
            return pa.Table.from_batches([given])
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given)
        if isinstance(given, Sequence) and all(isinstance(row, dict) for row in given):
            names = {name for row in given for name in row}
            schema = pa.schema([f for f in self._schema if f.name in names or f.name not in self._optional])
            try:
                return encode_rows(given, schema, self._where)
            except HeadwaterError as error:
                raise self._refused(str(error)) from None
        raise self._refused(f"it is a {type(given).__name__}; give an Arrow table, a DataFrame, or a list of dicts")

    def _complete(self, table: pa.Table) -> pa.Table:
        """The table with all columns of the state."""
        names = table.column_names
        missing = [name for name in self._schema.names if name not in names and name not in self._optional]
        unknown = [name for name in names if name not in self._schema.names]
        if missing or unknown or len(set(names)) < len(names):
            raise self._refused(f"it has the columns {', '.join(names)}")
        if "key" in self._optional and "key" in names:
            table = table.drop_columns(["key"])
        for name in sorted(self._optional - set(table.column_names)):
            dtype = self._schema.field(name).type
            if name in self._times:  # they are those of the start
                values = pa.nulls(len(table), dtype)
            else:
                values = pa.array([self._shared_key] * len(table) if name == "key" else range(len(table)), dtype)
            table = table.append_column(name, values)
        return table

    def _check_nulls(self, table: pa.Table) -> None:
        for name, column in zip(table.column_names, table.columns, strict=True):
            is_number = name != "key" if self._is_by_key else name.startswith("@") and name != COMPUTED_KEY
            if column.null_count and is_number and name not in self._times:
                row = table.slice(column.combine_chunks().is_null().index(True).as_py(), 1).to_pylist()[0]
                raise self._refused(f"column {name} is null in {row}; leave such rows out")

    def _check_twice(self, table: pa.Table) -> None:
        names = self._identity()
        if not names or not len(table):
            return
        groups = group([table[name] for name in names], len(table))
        counts = np.bincount(groups.codes)
        if counts.max() > 1:
            row = table.select(names).slice(int(groups.first[int(counts.argmax())]), 1).to_pylist()[0]
            shown = ", ".join(f"{name} {value!r}" for name, value in row.items())
            raise self._refused(f"{shown} is there {counts.max()} times; give one row for each")

    def _identity(self) -> list[str]:
        """The columns that tell entries apart; none where rows may be equal."""
        if self._is_by_key:
            return ["key", *(name for name in _ENTRY if name in self._schema.names)]
        if "@id" in self._schema.names:
            return ["@id"]
        return self._slice_key if self._place[1] == _SLICES else []

    def _refused(self, why: str) -> SavepointError:
        columns = ", ".join(
            f"{field.name} {_ddl(field.type)}" + (" (may be left out)" if field.name in self._optional else "")
            for field in self._schema
        )
        return SavepointError.bad_table(*self._place, why, columns)


def _plain(table: pa.Table) -> pa.Table:
    """The table in the types that state has, where others hold the same values: large strings, other units of time."""
    schema = pa.schema([field.with_type(_plain_type(field.type)) for field in table.schema])
    return table.cast(schema)


def _plain_type(dtype: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(dtype):
        return _plain_type(dtype.value_type)
    if types.is_large_string(dtype) or types.is_string_view(dtype):
        return pa.string()
    if types.is_large_binary(dtype) or types.is_binary_view(dtype) or types.is_fixed_size_binary(dtype):
        return pa.binary()
    if types.is_timestamp(dtype):
        return pa.timestamp("us", "UTC" if dtype.tz else None)
    if types.is_duration(dtype):
        return pa.duration("us")
    if types.is_date64(dtype):
        return pa.date32()
    if types.is_list(dtype) or types.is_large_list(dtype) or types.is_fixed_size_list(dtype):
        return pa.list_(_plain_type(dtype.value_type))
    if types.is_map(dtype):
        return pa.map_(_plain_type(dtype.key_type), _plain_type(dtype.item_type))
    if types.is_struct(dtype):
        return pa.struct([field.with_type(_plain_type(field.type)) for field in dtype])
    return dtype


def _ddl(dtype: pa.DataType) -> str:
    try:
        return type_ddl(dtype)
    except SchemaError:  # a type that only accumulators have
        return str(dtype)
