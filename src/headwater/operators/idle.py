"""Steps that keep accumulators of keys, and forget those of keys that were idle for a time if they are told to."""

from __future__ import annotations

import pyarrow as pa

from headwater.descriptors import ValueState
from headwater.graph.edges import Key
from headwater.operators.contract import Emit, StatefulOperator, StepTime
from headwater.operators.keys import key_spread
from headwater.state.accumulators import Accumulators, open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.idle import WRITTEN, IdleAccumulators
from headwater.state.table import KeyedLayout


def accumulators(
    name: str,
    schema: pa.Schema,
    step: str,
    key: Key,
    *,
    ttl_ms: int | None,
    since_first: bool = False,
    backend: StateBackend,
) -> Accumulators:
    """Accumulators of keys, which are forgotten if there is a ttl."""
    if ttl_ms is None:
        return open_accumulators(name, schema, step, key.type, key_spread(key), backend=backend)
    return idle_accumulators(name, schema, step, key, ttl_ms=ttl_ms, since_first=since_first, backend=backend)


def idle_accumulators(
    name: str,
    schema: pa.Schema,
    step: str,
    key: Key,
    *,
    ttl_ms: int,
    since_first: bool = False,
    backend: StateBackend,
) -> IdleAccumulators:
    """Accumulators of keys, which are forgotten when they were idle for that long."""
    kept = open_accumulators(name, schema.append(WRITTEN), step, key.type, key_spread(key), backend=backend)
    times = backend.times(ValueState(name, "boolean"), key.type)
    return IdleAccumulators(kept, ttl_ms, KeyedLayout(step, name, key.type, []), times, since_first=since_first)


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
        kept = accumulators(name, schema, step, key, ttl_ms=ttl_ms, since_first=since_first, backend=backend)
        self._kept: Accumulators = kept
        self._idle = kept if isinstance(kept, IdleAccumulators) else None
        self._expired = 0

    def _at(self, time: StepTime) -> None:
        """What comes is of this time; keys that were idle for too long are forgotten."""
        if self._idle is not None:
            self._expired += len(self._idle.at(time.now_ms))

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._at(time)

    def counters(self) -> dict[str, int]:
        expired, self._expired = self._expired, 0
        return {} if self._idle is None else {"state_expired": expired}
