"""Accumulators of keys that are forgotten when nothing was written for a time, as Flink's idle state is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.state.accumulators import Accumulators, Fold
from headwater.state.columns import Places
from headwater.state.table import StateTable

WRITTEN = pa.field("@written", pa.int64())
"""The last column of what is kept: the processing time at which it was written."""


class IdleAccumulators:
    """Accumulators with one more column in what is kept. A key that was idle for too long is as if it were not there.

    It is removed later: all keys are looked at once in the time after which they are forgotten.
    """

    def __init__(self, kept: Accumulators, ttl_ms: int, *, since_first: bool = False) -> None:
        self._kept, self._ttl_ms, self._since_first = kept, ttl_ms, since_first
        self._now_ms = 0
        self.swept_ms: int | None = None
        """When all keys were last looked at; it must survive, so that a replay does so at the same time."""

    @property
    def table(self) -> StateTable:
        return self._kept.table

    def at(self, now_ms: int) -> None:
        """What comes is of this processing time."""
        self._now_ms = now_ms

    def update(self, keys: Sequence[Any], fold: Fold) -> pa.Table:
        def timed(places: Places, before: pa.Table) -> pa.Table:
            then = before.column(WRITTEN.name).to_numpy()
            is_alive = then > self._now_ms - self._ttl_ms
            now = fold(places[is_alive], before.filter(pa.array(is_alive)).drop_columns(WRITTEN.name))
            written = np.full(len(now), self._now_ms)
            if self._since_first:
                written[places[is_alive]] = then[is_alive]
            return now.append_column(WRITTEN, pa.array(written))

        return self._kept.update(keys, timed).drop_columns(WRITTEN.name)

    def has(self, keys: Sequence[Any]) -> npt.NDArray[np.bool_]:
        return self._kept.has(keys)

    def remove(self, keys: Sequence[Any]) -> None:
        self._kept.remove(keys)

    def older(self, until: int) -> list[Any]:
        return self._kept.older(until)

    def sweep(self, now_ms: int) -> None:
        """Remove the keys that are forgotten, if it is time to."""
        if self.swept_ms is None:
            self.swept_ms = now_ms
        elif now_ms >= self.swept_ms + self._ttl_ms:
            self._kept.remove(self._kept.older(now_ms - self._ttl_ms))
            self.swept_ms = now_ms
