"""Accumulators in memory, by columns: a key has a place in every column, which a dictionary knows.

A column of numbers is an array, so that a batch reads and writes the places of its keys at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.rows import decode
from headwater.state.by_hash import PlacesByHash
from headwater.state.columns import Column, Places, column_of
from headwater.state.slices import Slice
from headwater.state.spread import Spread
from headwater.state.table import PUT, KeyedLayout, StateTable, sorted_by_key

Fold = Callable[[Places, pa.Table], pa.Table]
"""Gets which of the keys have accumulators, and these; gives the accumulators that all of them are to have."""


class KeptByColumns:
    """Accumulators in memory, and their table."""

    cut_since = 1

    def __init__(self, layout: KeyedLayout, schema: pa.Schema) -> None:
        self._layout, self._schema = layout, schema
        self.clear_all()

    @property
    def table(self) -> StateTable:
        return self

    @property
    def spread(self) -> Spread:
        return self._layout.spread

    def clear_all(self) -> None:
        self._places: dict[Any, int] = {}
        self._keys: list[Any] = []
        """The key of each place; of a place that is free, the last one it had."""
        self._columns: list[Column] = [column_of(field.type) for field in self._schema]
        self._written: list[Places] = []
        """The places written since the last delta; some of them again."""
        self._removed: dict[Any, int] = {}
        """The keys removed since the last delta, and the places that are kept for them until then."""
        self._free: list[int] = []
        self._told = 0
        """The places up to here were there at the last delta, but for those in `_taken`."""
        self._taken: set[int] = set()
        """The free places that were given to keys since the last delta."""
        self._by_hash = PlacesByHash()

    def update(self, keys: Sequence[Any], fold: Fold) -> pa.Table:
        places = np.fromiter(map(self._places.get, keys, repeat(-1)), np.int64, len(keys))
        is_kept = places >= 0
        kept = [column.take(places[is_kept]) for column in self._columns]
        now = fold(np.flatnonzero(is_kept), pa.Table.from_arrays(kept, schema=self._schema))
        new = np.flatnonzero(~is_kept)
        places[new] = self._add_keys([keys[at] for at in new.tolist()])
        self._put(places, now.columns)
        self._written.append(places)
        return now

    def has(self, keys: Sequence[Any]) -> npt.NDArray[np.bool_]:
        return np.fromiter(map(self._places.__contains__, keys), np.bool_, len(keys))

    def remove(self, keys: Sequence[Any]) -> None:
        places = [self._places.pop(key) for key in keys]
        self._removed.update(zip(keys, places, strict=True))
        self._written.append(np.array(places, np.int64))
        self._empty(self._written[-1])

    def _empty(self, places: Places) -> None:
        """Let places have no values, which may be large."""
        for column, field in zip(self._columns, self._schema, strict=True):
            column.put(places, pa.nulls(len(places), field.type))

    def last(self, keys: Sequence[Any]) -> npt.NDArray[np.int64]:
        places = np.fromiter(map(self._places.__getitem__, keys), np.int64, len(keys))
        found: npt.NDArray[np.int64] = self._columns[-1].take(places).to_numpy()
        return found

    def _add_keys(self, keys: Sequence[Any]) -> Sequence[int]:
        """Give places to keys that have none."""
        if keys and not self._removed and len(self._free) >= len(keys):
            free = self._free[-len(keys) :]
            del self._free[-len(keys) :]
            for place, key in zip(free, keys, strict=True):
                self._keys[place] = key
            self._places.update(zip(keys, free, strict=True))
            self._taken.update(free)
            self._by_hash.outdate(free)
            return free
        if self._removed or self._free:
            return [self._add_key(key) for key in keys]
        places = range(len(self._keys), len(self._keys) + len(keys))
        self._places.update(zip(keys, places, strict=True))
        self._keys += keys
        return places

    def _add_key(self, key: Any) -> int:
        place = self._removed.pop(key, None)
        if place is None and self._free:
            place = self._free.pop()
            self._keys[place] = key
            self._taken.add(place)
            self._by_hash.outdate_one(place)
        elif place is None:
            place = len(self._keys)
            self._keys.append(key)
        self._places[key] = place
        return place

    def _put(self, places: Places, columns: Sequence[pa.ChunkedArray]) -> None:
        for column, values in zip(self._columns, columns, strict=True):
            column.put(places, values.combine_chunks())

    def changes(self) -> pa.Table | None:
        if not self._written:
            return None
        written = np.concatenate(self._written)
        _, first = np.unique(written, return_index=True)
        written = written[np.sort(first)]  # not in the order of places, which is another in a copy rebuilt
        gone = None
        if self._removed:
            gone = np.isin(written, list(self._removed.values()))
            known = self._are_known(written)
            gone, written = gone[known | ~gone], written[known | ~gone]  # but for those that came and went
        changes = self._rows(written, gone) if len(written) else None
        self.forget_changes()
        return changes

    def _are_known(self, places: Places) -> npt.NDArray[np.bool_]:
        """Which places have keys that were there at the last delta."""
        return (places < self._told) & ~np.isin(places, list(self._taken))

    def forget_changes(self) -> None:
        self._written = []
        self._free += self._removed.values()
        self._removed, self._taken, self._told = {}, set(), len(self._keys)

    def dump(self) -> pa.Table:
        return sorted_by_key(self._rows(np.fromiter(self._places.values(), np.int64, len(self._places))))

    def dump_slice(self, part: Slice) -> pa.Table:
        found = self._by_hash.within(part, self._keys, self._layout.key_column).tolist()
        places = [place for place in found if self._places.get(self._keys[place]) == place]  # others are free
        return sorted_by_key(self._rows(np.array(places, np.int64)))

    def load(self, dumped: pa.Table) -> None:
        self.apply(dumped)

    def _rows(self, places: Places, gone: npt.NDArray[np.bool_] | None = None) -> pa.Table:
        keys = list(map(self._keys.__getitem__, places.tolist()))
        return self._layout.puts_of(keys, [column.take(places) for column in self._columns], gone)

    def apply(self, changes: pa.Table) -> None:
        is_put = changes.column("op").to_numpy() == PUT
        if not is_put.all():
            self.remove([key for key in decode(changes["key"].filter(pa.array(~is_put))) if key in self._places])
            changes = changes.filter(pa.array(is_put))
        keys = decode(changes["key"])
        self._add_keys(list(dict.fromkeys(key for key in keys if key not in self._places)))
        places = np.fromiter(map(self._places.__getitem__, keys), np.int64, len(keys))
        self._put(places, changes.column("value").flatten())
        self.forget_changes()

    def __len__(self) -> int:
        return len(self._places)
