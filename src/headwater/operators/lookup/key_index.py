"""An index over the key columns of a table: finds the rows of many keys at once, without a Python call per row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.batch import flat
from headwater.operators.keys import hash_columns, is_whole

Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """For each key how many rows have it, and where in `rows` these are, key after key."""

    counts: Places
    places: Places
    rows: pa.Table


def key_parts(table: pa.Table, names: Sequence[str], types: Sequence[pa.DataType]) -> list[pa.Array]:
    """Key columns as plain arrays of these types; the fields of structs are parts of their own."""
    return [
        part for name, dtype in zip(names, types, strict=True) for part in _leaves(flat(table.column(name).cast(dtype)))
    ]


def ranges(starts: Places, counts: Places) -> Places:
    """The numbers from each start on, so many of them, end to end."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    numbers: Places = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return numbers


class KeyIndex:
    """Hashes of the keys, in order. A search costs what is searched for, times the logarithm of what is there."""

    def __init__(
        self, table: pa.Table, keys: Sequence[str], types: Sequence[pa.DataType], columns: Sequence[str]
    ) -> None:
        self._parts = key_parts(table, keys, types)
        self._rows = table.select(list(columns)).combine_chunks()
        hashes = hash_columns(self._parts)
        places = np.flatnonzero(is_whole(self._parts, len(table)))
        self._places = places[np.argsort(hashes[places], kind="stable")]
        self._hashes = hashes[self._places]

    def find(self, parts: Sequence[pa.Array], count: int) -> Found:
        """The rows of each key, in the order of the table."""
        hashes = hash_columns(parts)
        starts = np.searchsorted(self._hashes, hashes)
        like = np.searchsorted(self._hashes, hashes, "right") - starts
        like[~is_whole(parts, count)] = 0
        asked = np.repeat(np.arange(count, dtype=np.int64), like)
        places = self._places[ranges(starts, like)]
        same = np.ones(len(asked), np.bool_)  # rows with the hash of a key may still have another key
        for given, known in zip(parts, self._parts, strict=True):
            equal = pc.equal(given.take(pa.array(asked)), known.take(pa.array(places)))
            same &= equal.to_numpy(zero_copy_only=False)
        return Found(np.bincount(asked[same], minlength=count), places[same], self._rows)


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    if pa.types.is_struct(array.type):
        for child in array.flatten():
            yield from _leaves(child)
    else:
        yield array
