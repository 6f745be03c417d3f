"""Accumulators of keys that are forgotten when nothing was written for a time, as Flink's idle state is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.rows import decode
from headwater.state.accumulators import Accumulators
from headwater.state.columns import Places
from headwater.state.kept_columns import Fold
from headwater.state.slices import Slice, SlicedTable
from headwater.state.spread import Spread
from headwater.state.table import PUT, KeyedLayout, StateTable
from headwater.state.time_index import TimeIndex

WRITTEN = pa.field("@written", pa.int64())
"""The last column of what is kept: the processing time at which it was written; null where nobody has known it."""
_DEAD = 1024
"""So many keys that are gone may be in the index before it is made again."""


class IdleAccumulators:
    """Accumulators with one more column in what is kept, and their table. A key that was idle for too long is not there.

    Such keys are removed when the clock moves, before anything else, and found by an index.
    """

    cut_since = 1

    def __init__(
        self, kept: Accumulators, ttl_ms: int, keys: KeyedLayout, times: TimeIndex, *, since_first: bool = False
    ) -> None:
        self._kept, self._ttl_ms, self._keys, self._times = kept, ttl_ms, keys, times
        self._since_first = since_first
        self._now_ms: int | None = None
        self._dead = 0
        """How many keys were removed that the index still names."""

    @property
    def table(self) -> StateTable:
        return self

    def at(self, now_ms: int) -> list[Any]:
        """It is this late. Gives the keys that are forgotten."""
        if self._now_ms is not None and now_ms <= self._now_ms:
            return []
        self._now_ms = now_ms
        self._set_times(self._there(self._times.untimed()))
        due = self._there(self._times.until(now_ms - self._ttl_ms))
        if not due:
            return []
        written = self._kept.last(due)
        is_older = written <= now_ms - self._ttl_ms
        self._name([due[place] for place in np.flatnonzero(~is_older).tolist()], written[~is_older])
        gone = self._keys.sorted_keys(due[place] for place in np.flatnonzero(is_older).tolist())
        self._kept.remove(gone)
        return gone

    def _there(self, named: list[Any]) -> list[Any]:
        """Of keys in the index those that are kept, each once."""
        if not named:
            return []
        keys = list(dict.fromkeys(named))
        is_there = self._kept.has(keys)
        self._dead -= len(named) - int(is_there.sum())
        return [keys[place] for place in np.flatnonzero(is_there).tolist()]

    def _set_times(self, keys: list[Any]) -> None:
        """Let keys that were written when nobody knew the time be written now."""
        if keys:
            keys = self._keys.sorted_keys(keys)
            self._kept.update(keys, lambda _, before: self._timed(before.drop_columns(WRITTEN.name)))
            self._times.add_all(self._now_ms, keys)

    def _timed(self, accumulators: pa.Table) -> pa.Table:
        return accumulators.append_column(WRITTEN, pa.array(np.full(len(accumulators), self._now_ms)))

    def _name(self, keys: Sequence[Any], written: npt.NDArray[np.int64]) -> None:
        """Name keys to the index."""
        order = np.argsort(written, kind="stable")
        times, starts = np.unique(written[order], return_index=True)
        for time_ms, part in zip(times.tolist(), np.split(order, starts[1:]), strict=False):
            self._times.add_all(time_ms, [keys[place] for place in part.tolist()])

    def update(self, keys: Sequence[Any], fold: Fold) -> pa.Table:
        def timed(places: Places, before: pa.Table) -> pa.Table:
            is_new = np.ones(len(keys), np.bool_)
            is_new[places] = False
            self._times.add_all(self._now_ms, [keys[place] for place in np.flatnonzero(is_new).tolist()])
            now = fold(places, before.drop_columns(WRITTEN.name))
            if not self._since_first:
                return self._timed(now)
            written = np.full(len(now), self._now_ms)
            written[places] = before.column(WRITTEN.name).to_numpy()
            return now.append_column(WRITTEN, pa.array(written))

        return self._kept.update(keys, timed).drop_columns(WRITTEN.name)

    def has(self, keys: Sequence[Any]) -> npt.NDArray[np.bool_]:
        return self._kept.has(keys)

    def last(self, keys: Sequence[Any]) -> npt.NDArray[np.int64]:
        return self._kept.last(keys)

    def remove(self, keys: Sequence[Any]) -> None:
        self._dead += len(keys)
        self._kept.remove(keys)

    # -- as a table -------------------------------------------------------------------------------------------------

    @property
    def spread(self) -> Spread:
        return self._kept.table.spread

    def changes(self) -> pa.Table | None:
        self._tidy()
        return self._kept.table.changes()

    def forget_changes(self) -> None:
        self._kept.table.forget_changes()

    def dump(self) -> pa.Table:
        return self._kept.table.dump()

    def dump_slice(self, part: Slice) -> pa.Table:
        table = self._kept.table
        assert isinstance(table, SlicedTable)
        return table.dump_slice(part)

    def load(self, dumped: pa.Table) -> None:
        self.apply(dumped)

    def apply(self, changes: pa.Table) -> None:
        puts = changes.filter(pa.array(changes.column("op").to_numpy() == PUT))
        self._dead += len(changes) - len(puts)
        keys = decode(puts["key"])
        new = pa.array(~self._kept.has(keys))
        self._name_rows(puts.filter(new))
        self._kept.table.apply(changes)

    def _name_rows(self, puts: pa.Table) -> None:
        """Name the keys of puts to the index, with their times."""
        written = puts["value"].combine_chunks().flatten()[-1]
        keys = decode(puts["key"])
        if written.null_count:
            is_timed = written.is_valid().to_numpy(zero_copy_only=False)
            self._times.add_all(None, [keys[place] for place in np.flatnonzero(~is_timed).tolist()])
            keys = [keys[place] for place in np.flatnonzero(is_timed).tolist()]
        self._name(keys, written.drop_null().to_numpy())

    def _tidy(self) -> None:
        if self._dead > _DEAD and 2 * self._dead > len(self._times):
            self._times.clear()
            self._dead = 0
            self._name_rows(self._kept.table.dump())

    def clear_all(self) -> None:
        self._kept.table.clear_all()
        self._times.clear()
        self._now_ms, self._dead = None, 0

    def __len__(self) -> int:
        return len(self._kept.table)
