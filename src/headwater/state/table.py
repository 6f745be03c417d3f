"""The contract between working state and its changelog: every state is a table of typed entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.rows import encode, recode
from headwater.state.spread import BY_KEY, Spread

PUT, REMOVE, CLEAR = 0, 1, 2
"""What a row of a change table does: set an entry, remove an entry, remove all entries of a key."""
CHUNK_ROWS = 65_536
"""Rows of a table that are held as Python values at a time."""


class StateTable(Protocol):
    """State that can tell what changed, be brought up to date from that, and write itself out whole.

    An epoch replayed on a copy rebuilt from changes must give the same bytes, so nothing that a function or a dump shows
    may depend on how the table came to be.
    """

    @property
    def spread(self) -> Spread:
        """How the dumps of all subtasks are dealt out to another number of them."""

    def changes(self) -> pa.Table | None:
        """What changed since the last call, or None; forgets it."""

    def forget_changes(self) -> None:
        """Take what changed as told."""

    def dump(self) -> pa.Table:
        """All entries, as puts."""

    def apply(self, changes: pa.Table) -> None:
        """Make the changes of another copy here."""

    def clear_all(self) -> None:
        """Forget everything."""

    def __len__(self) -> int:
        """The number of entries."""


@runtime_checkable
class NestedTable(StateTable, Protocol):
    """State whose entries are made of elements, each of which is a row of its dumps."""

    @property
    def elements(self) -> int:
        """The number of elements of all entries."""


def rows_of(table: StateTable) -> int:
    """How many rows a dump has."""
    return table.elements if isinstance(table, NestedTable) else len(table)


def sorted_by_key(table: pa.Table) -> pa.Table:
    """The rows in the order of their keys, nulls last, those of one key as they were."""
    return table.take(_order_by_key(table.column("key").combine_chunks()))


def _order_by_key(key: pa.Array) -> pa.Array:
    """The places of keys in order."""
    if pa.types.is_integer(key.type) and not key.null_count:
        numbers = key.to_numpy()
        order = np.argsort(numbers)  # several times as fast as what keeps equal ones as they were
        in_order = numbers[order]
        if (in_order[1:] != in_order[:-1]).all():
            return pa.array(order)
    columns = [*_compared(key), pa.array(np.arange(len(key)))]
    order = pa.table(columns, names=[str(place) for place in range(len(columns))])
    return pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names])


def _compared(key: pa.Array) -> list[pa.Array]:
    """The columns that keys are compared by; a null struct comes behind one of nulls."""
    if not pa.types.is_struct(key.type):
        return [key]
    return [column for child in key.flatten() for column in _compared(child)] + [key.is_null()]


class KeyedLayout:
    """The columns of a keyed state's change table and how to fill them."""

    def __init__(
        self,
        step: str,
        name: str,
        key: pa.DataType,
        columns: list[tuple[str, pa.DataType]],
        spread: Spread = BY_KEY,
    ) -> None:
        self.step, self.name, self.spread = step, name, spread
        self._where = f"{step}, state {name!r}"
        self._key = pa.field("key", key)
        self._fields = [pa.field(column, dtype) for column, dtype in columns]
        self.schema = pa.schema([pa.field("op", pa.int8()), self._key, *self._fields])

    def table(self, ops: list[int], keys: Sequence[Any], *columns: Sequence[Any]) -> pa.Table:
        where = self._where
        key = encode(keys, self._key, where)
        arrays = [encode(values, field, where) for values, field in zip(columns, self._fields, strict=True)]
        return pa.Table.from_arrays([pa.array(ops, pa.int8()), key, *arrays], schema=self.schema)

    def puts_of(
        self, keys: Sequence[Any], fields: Sequence[pa.Array], gone: npt.NDArray[np.bool_] | None = None
    ) -> pa.Table:
        """Puts of keys, as columns gave them, whose value is a struct of these fields; those that are gone are removed."""
        absent = None if gone is None else pa.array(gone)
        value = pa.StructArray.from_arrays(fields, fields=list(self._fields[0].type), mask=absent)
        ops = pa.array(
            np.full(len(keys), PUT, np.int8) if gone is None else np.where(gone, REMOVE, PUT).astype(np.int8)
        )
        return pa.Table.from_arrays([ops, recode(keys, self._key.type), value], schema=self.schema)

    def of_column(self, ops: pa.Array, keys: Sequence[Any], column: pa.Array) -> pa.Table:
        """A change table whose one column beside the key is there already."""
        return pa.Table.from_arrays([ops, self.key_column(keys), column], schema=self.schema)

    def key_column(self, keys: Sequence[Any]) -> pa.Array:
        """Keys as a column."""
        return encode(keys, self._key, self._where)

    def sorted_keys(self, keys: Iterable[Any]) -> list[Any]:
        """Keys in the order in which a dump has them."""
        keys = list(keys)
        places = pa.array(range(len(keys)), pa.int64())
        table = pa.table({"key": encode(keys, self._key, self._where), "place": places})
        return [keys[place] for place in sorted_by_key(table)["place"].to_pylist()]

    def sorted_entries(self, pairs: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
        """Pairs of a key and a value of the first column, in an order that depends on them alone."""
        keys, entries = zip(*pairs, strict=True)
        fields = ((keys, self._key), (entries, self._fields[0]))
        columns = [column for values, field in fields for column in _compared(encode(values, field, self._where))]
        order = pa.table(columns, names=[str(place) for place in range(len(columns))])
        places = pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names])
        return [pairs[place] for place in places.to_pylist()]

    def puts(self, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
        """Rows of a key and the other columns, as puts; made in chunks, so that few are held as Python values at a time."""
        chunks = [self.schema.empty_table()]
        rows = iter(rows)
        while chunk := list(islice(rows, CHUNK_ROWS)):
            keys, *columns = zip(*chunk, strict=True)
            chunks.append(self.table([PUT] * len(chunk), keys, *columns))
        return pa.concat_tables(chunks)


def chunks_of(table: pa.Table) -> Iterator[pa.Table]:
    """A table in pieces whose rows may be held as Python values."""
    for start in range(0, len(table), CHUNK_ROWS):
        yield table.slice(start, CHUNK_ROWS)
