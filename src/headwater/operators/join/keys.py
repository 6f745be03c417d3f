"""The keys by which rows of two sides meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch, flat
from headwater.graph.edges import Key
from headwater.operators.join.contents import equal_values
from headwater.operators.keys import hash_columns, is_whole
from headwater.state.keys import Hashes

COMPUTED_KEY = "@key"
"""The column in which rows carry a key that is the result of a function."""


@dataclass(frozen=True)
class JoinKeys:
    """The key of each row, column by column, and its hash."""

    arrays: list[pa.Array]
    hashes: Hashes

    @classmethod
    def of(cls, arrays: list[pa.Array]) -> JoinKeys:
        return cls(arrays, hash_columns(arrays))

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, rows: npt.NDArray[np.int64]) -> JoinKeys:
        return JoinKeys([array.take(pa.array(rows)) for array in self.arrays], self.hashes[rows])


def stored_schema(rows: pa.Schema, key: Key) -> pa.Schema:
    """The columns in which a side's rows are kept."""
    return rows if key.function is None else rows.append(pa.field(COMPUTED_KEY, key.type))


def key_names(key: Key) -> list[str]:
    """The columns, of those in which rows are kept, that make the key."""
    return list(key.columns) if key.function is None else [COMPUTED_KEY]


def with_key_column(batch: Batch, key: Key) -> Batch:
    """The rows with their key among their columns, also where it is the result of a function."""
    if batch.key is None:
        return batch
    table = batch.table.append_column(pa.field(COMPUTED_KEY, key.type), batch.key)
    return Batch(table, batch.timestamps, kinds=batch.kinds)


def can_meet(rows: pa.Table, names: list[str]) -> npt.NDArray[np.bool_]:
    """Which rows can meet others: those without a null in their key."""
    return is_whole([rows.column(name) for name in names], len(rows))


def keyed_rows(batch: Batch, key: Key) -> Batch:
    """The rows that can meet others, with their key among their columns."""
    rows = with_key_column(batch, key)
    meets = can_meet(rows.table, key_names(key))
    return rows if meets.all() else rows.take(np.flatnonzero(meets))


def keys_in(rows: pa.Table, names: list[str]) -> JoinKeys:
    """The keys of rows that have them among their columns; without any, all rows have one."""
    if not names:
        return JoinKeys([], np.zeros(len(rows), np.uint64))
    return JoinKeys.of([flat(column) for column in key_columns(rows, names)])


def key_columns(rows: pa.Table, names: list[str]) -> list[pa.ChunkedArray]:
    """The columns of rows that make their key; a struct is taken apart, as the other side may have its parts as columns."""
    columns = [rows.column(name) for name in names]
    is_struct = len(columns) == 1 and pa.types.is_struct(columns[0].type)
    return columns[0].flatten() if is_struct else columns


def are_equal(keys: JoinKeys, at: npt.NDArray[np.int64], rows: pa.Table, names: list[str]) -> npt.NDArray[np.bool_]:
    """Whether the keys at these places are those of the rows, one by one: hashes may be equal by chance."""
    places = pa.array(at)
    equal = np.ones(len(at), np.bool_)
    for ours, theirs in zip(keys.arrays, key_columns(rows, names), strict=True):
        equal &= equal_values(ours.take(places), flat(theirs))
    return equal
