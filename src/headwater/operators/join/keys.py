"""The keys by which rows of two sides meet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.batch import Batch
from headwater.graph.nodes import Key
from headwater.operators.keys import key_arrays
from headwater.state.keys import Hashes, hash_keys

COMPUTED_KEY = "@key"
"""The column in which rows carry a key that is the result of a function."""


@dataclass(frozen=True)
class JoinKeys:
    """The key of each row, column by column, and its hash."""

    arrays: list[pa.Array]
    hashes: Hashes

    @classmethod
    def of(cls, arrays: list[pa.Array]) -> JoinKeys:
        whole = (
            arrays[0] if len(arrays) == 1 else pa.StructArray.from_arrays(arrays, [str(i) for i in range(len(arrays))])
        )
        return cls(arrays, hash_keys(whole))

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


def keyed_rows(batch: Batch, key: Key) -> Batch:
    """The rows that can meet others, with their key among their columns: a null meets nothing."""
    rows = batch
    if batch.key is not None:
        rows = Batch(batch.table.append_column(pa.field(COMPUTED_KEY, key.type), batch.key), batch.timestamps)
    unknown = [array.is_null() for array in key_arrays(batch, key) if array.null_count]
    if not unknown:
        return rows
    meets = np.ones(len(batch), np.bool_)
    for column in unknown:
        meets &= ~np.asarray(column)
    return rows.take(np.flatnonzero(meets))


def keys_in(rows: pa.Table, names: list[str]) -> JoinKeys:
    """The keys of rows that have them among their columns."""
    return JoinKeys.of([_flat(rows.column(name)) for name in names])


def are_equal(left: JoinKeys, at: npt.NDArray[np.int64], right: JoinKeys) -> npt.NDArray[np.bool_]:
    """Whether the keys of `left` at these places are those of `right`, one by one: hashes may be equal by chance."""
    places = pa.array(at)
    equal = np.ones(len(at), np.bool_)
    for ours, theirs in zip(left.arrays, right.arrays, strict=True):
        equal &= _equal(ours.take(places), theirs)
    return equal


def _equal(left: pa.Array, right: pa.Array) -> npt.NDArray[np.bool_]:
    if not pa.types.is_struct(left.type):
        return np.asarray(pc.equal(left, right).fill_null(False))  # noqa: FBT003  Arrow's signature
    equal = np.ones(len(left), np.bool_)
    for ours, theirs in zip(left.flatten(), right.flatten(), strict=True):
        equal &= _equal(ours, theirs)
    return equal


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
