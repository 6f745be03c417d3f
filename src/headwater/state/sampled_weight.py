"""What rows by key take, told from a sample of them: so it does not matter which of them are written most.

Each row has a number between 0 and 1, its lot, which its hash gives. It is in the sample if its size divided by its lot is
at least the limit. So rows of the size of the limit and more are all in it, and of smaller ones the more the larger they
are: a few large rows among many small ones are not left to chance. When the sample gets too large the limit is raised.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.keys import Hashes, hash_keys
from headwater.state.table import CLEAR, PUT, REMOVE

_MOST_ROWS, _ROWS = 2048, 1024
"""When there are more rows than the first, so many stay: enough for a total that is off by some hundredths at most."""
_NAMES = ("key", "entry", "timestamp")
"""The columns that tell a row from all others, of a value, an entry of a map and a timer. Elements of lists have places."""
_LOW_BITS = np.uint64(0xFFFF)

Sizes = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class SampledWeight:
    """The weight of rows that are written again and again, each with a size of its own, and have a column `key`."""

    def __init__(self, schema: pa.Schema, row_bytes: float) -> None:
        """Until something was written, a row takes so much."""
        self._names = [name for name in _NAMES if name in schema.names]
        self._has_places = "index" in schema.names
        self._small_bytes = row_bytes
        """What rows below the limit take in the mean, as far as such were here."""
        self.forget()

    def forget(self) -> None:
        self._keys = self._ids = np.zeros(0, np.uint64)
        self._places = self._sizes = np.zeros(0, np.int64)
        self._limit = 0.0
        self._arrived = 0

    def __len__(self) -> int:
        return len(self._ids)

    def see(self, written: pa.Table, kept: int) -> None:
        ops, keys = written["op"].to_numpy(), hash_keys(written["key"])
        puts = np.flatnonzero(ops == PUT)
        self._keep(~_among(self._keys, keys[ops == CLEAR]))
        if self._has_places:
            self._drop_first(written, np.flatnonzero(ops == REMOVE), keys)
            ids = self._new_ids(len(puts))
            places = _column(written, "index").take(pa.array(puts)).to_numpy()
        else:
            names = self._ids_of(written, keys)
            self._keep(~_among(self._ids, names[ops != CLEAR]))
            ids, places = names[puts], np.zeros(len(puts), np.int64)
        sizes = _together(map(written.column, written.column_names[1:]), len(written))[puts]
        chosen = np.flatnonzero(sizes / _lots(ids) >= self._limit)
        self._add(keys[puts[chosen]], ids[chosen], places[chosen], sizes[chosen])
        small = self._sizes[self._sizes < self._limit]
        if len(small):  # which are here by their sizes, so that the mean of all is the harmonic one of those
            self._small_bytes = len(small) / float((1 / small).sum())

    def of(self, rows: int) -> int:
        is_large = self._sizes >= self._limit
        return int(self._sizes[is_large].sum()) + round(max(0, rows - int(is_large.sum())) * self._small_bytes)

    def _ids_of(self, written: pa.Table, keys: Hashes) -> Hashes:
        if len(self._names) == 1:
            return keys
        columns = [_hashable(_column(written, name)) for name in self._names]
        return hash_keys(pa.StructArray.from_arrays(columns, names=self._names))

    def _new_ids(self, count: int) -> Hashes:
        """Ids of what is never written again: by its number."""
        numbers = np.arange(self._arrived, self._arrived + count)
        self._arrived += count
        return hash_keys(pa.array(numbers))

    def _drop_first(self, written: pa.Table, removals: npt.NDArray[np.int64], keys: Hashes) -> None:
        """Lists have lost elements at the front; those behind them move up."""
        if not len(removals) or not len(self):
            return
        counts = _column(written, "index").take(pa.array(removals)).to_numpy()
        order = np.argsort(keys[removals])
        shorter = keys[removals][order]
        at = np.minimum(np.searchsorted(shorter, self._keys), len(shorter) - 1)
        self._places = self._places - np.where(shorter[at] == self._keys, counts[order][at], 0)
        self._keep(self._places >= 0)

    def _add(self, keys: Hashes, ids: Hashes, places: Sizes, sizes: Sizes) -> None:
        self._keys = np.concatenate([self._keys, keys])
        self._ids = np.concatenate([self._ids, ids])
        self._places = np.concatenate([self._places, places])
        self._sizes = np.concatenate([self._sizes, sizes])
        if len(self) > _MOST_ROWS:
            ranks = self._sizes / _lots(self._ids)
            self._limit = float(np.partition(ranks, -_ROWS)[-_ROWS])
            self._keep(ranks >= self._limit)

    def _keep(self, rows: Bools) -> None:
        if not rows.all():
            self._keys, self._ids = self._keys[rows], self._ids[rows]
            self._places, self._sizes = self._places[rows], self._sizes[rows]


def sizes_of(column: pa.Array) -> Sizes:
    """What each value of a column takes."""
    dtype = column.type
    if pa.types.is_struct(dtype):
        return _together(column.flatten(), len(column))
    if pa.types.is_string(dtype) or pa.types.is_binary(dtype):
        lengths: Sizes = pc.fill_null(pc.binary_length(column), 0).to_numpy().astype(np.int64)
        return lengths + 4
    if pa.types.is_list(dtype) or pa.types.is_map(dtype):
        up_to = np.concatenate([[0], np.cumsum(sizes_of(column.values))])
        bounds: Sizes = up_to[column.offsets.to_numpy()]
        return np.diff(bounds) + 4
    return np.full(len(column), max(1, dtype.bit_width // 8))


def _together(columns: Iterable[pa.Array | pa.ChunkedArray], count: int) -> Sizes:
    """What values of several columns take, which lie beside each other."""
    found = np.zeros(count, np.int64)
    for column in columns:
        found += sizes_of(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    return found


def is_of_one_size(dtype: pa.DataType) -> bool:
    """Whether all values of a type take the same."""
    if pa.types.is_struct(dtype):
        return all(is_of_one_size(field.type) for field in dtype)
    return not (
        pa.types.is_string(dtype) or pa.types.is_binary(dtype) or pa.types.is_list(dtype) or pa.types.is_map(dtype)
    )


def _column(written: pa.Table, name: str) -> pa.Array:
    return written[name].combine_chunks()


def _lots(ids: Hashes) -> npt.NDArray[np.float64]:
    """The lot of each row: above 0, and 1 at most."""
    return ((ids >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def _hashable(column: pa.Array) -> pa.Array:
    """A column as `hash_keys` takes it: numbers with a point as the bits they are made of."""
    if pa.types.is_struct(column.type):
        fields = [_hashable(child) for child in column.flatten()]
        return pa.StructArray.from_arrays(fields, names=[field.name for field in column.type])
    return column.cast(pa.float64()).view(pa.int64()) if pa.types.is_floating(column.type) else column


def _among(few: Hashes, many: Hashes) -> Bools:
    """Which of a few hashes are among many, most of which are none of them."""
    distinct, numbers = np.unique(few, return_inverse=True)
    is_met = np.zeros(len(distinct), np.bool_)
    if len(distinct) and len(many):
        is_near = np.zeros(int(_LOW_BITS) + 1, np.bool_)
        is_near[(distinct & _LOW_BITS).astype(np.int64)] = True
        near = many[is_near[(many & _LOW_BITS).astype(np.int64)]]
        at = np.minimum(np.searchsorted(distinct, near), len(distinct) - 1)
        is_met[at[distinct[at] == near]] = True
    return is_met[numbers]
