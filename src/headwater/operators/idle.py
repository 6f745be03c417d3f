"""Steps that keep accumulators of keys, and forget those of keys that were idle for a time if they are told to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.graph.edges import Key
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.keys import key_spread
from headwater.state.accumulators import Accumulators, open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.idle import WRITTEN, IdleAccumulators


class ForgetsIdleKeys(StatefulOperator):
    """A step with one table of accumulators."""

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        step: str,
        key: Key,
        *,
        ttl_ms: int | None,
        since_first: bool = False,
        backend: StateBackend,
    ) -> None:
        """With `since_first` a key is forgotten so long after it came, however often it was written since."""
        stored = schema if ttl_ms is None else schema.append(WRITTEN)
        kept = open_accumulators(name, stored, step, key.type, key_spread(key), backend=backend)
        self._idle = None if ttl_ms is None else IdleAccumulators(kept, ttl_ms, since_first=since_first)
        self._kept: Accumulators = kept if self._idle is None else self._idle

    def _at(self, time: StepTime) -> None:
        """What comes is of this time."""
        if self._idle is not None:
            self._idle.at(time.now_ms)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        if self._idle is not None:
            self._idle.sweep(time.now_ms)

    def meta(self) -> dict[str, Any]:
        return {} if self._idle is None else {"swept_ms": self._idle.swept_ms}

    def set_meta(self, meta: dict[str, Any]) -> None:
        if self._idle is not None:
            self._idle.swept_ms = meta["swept_ms"]

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        known = [meta["swept_ms"] for meta in metas if meta.get("swept_ms") is not None]
        return {} if self._idle is None else {"swept_ms": min(known, default=None)}

    def reset(self) -> None:
        super().reset()
        if self._idle is not None:
            self._idle.swept_ms = None
