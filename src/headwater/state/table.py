"""The contract between working state and its changelog: every state is a table of typed entries."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.rows import encode
from headwater.state.spread import BY_KEY, Spread

PUT, REMOVE, CLEAR = 0, 1, 2
"""What a row of a change table does: set an entry, remove an entry, remove all entries of a key."""


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


def sorted_by_key(table: pa.Table) -> pa.Table:
    """The rows in the order of their keys, those of one key as they were: independent of how the table came to be."""
    return table.take(_order_of(table.column("key").combine_chunks()))


def _order_of(key: pa.Array) -> pa.Array:
    """The places of keys in ascending order; equal keys stay as they were."""
    columns = key.flatten() if pa.types.is_struct(key.type) else [key]
    order = pa.table(
        [*columns, pa.array(np.arange(len(key)))], names=[f"k{i}" for i in range(len(columns))] + ["place"]
    )
    return pc.sort_indices(order, sort_keys=[(name, "ascending") for name in order.column_names])


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

    def order(self, keys: list[Any]) -> list[int]:
        """The places of keys in the order in which a dump has them."""
        return _order_of(encode(keys, self._key, self._where)).to_pylist()  # type: ignore[no-any-return]

    def table(self, ops: list[int], keys: list[Any], *columns: list[Any]) -> pa.Table:
        where = self._where
        key = encode(keys, self._key, where)
        arrays = [encode(values, field, where) for values, field in zip(columns, self._fields, strict=True)]
        return pa.Table.from_arrays([pa.array(ops, pa.int8()), key, *arrays], schema=self.schema)
