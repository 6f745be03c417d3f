"""Deduplication: the first row of each key goes on, and the key is known until its time is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from headwater.data.rows import Row, decode
from headwater.descriptors import ValueState
from headwater.graph.nodes import DeduplicateNode
from headwater.graph.nodes.deduplication import KNOWN_UNTIL
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.timers import KeepsTimers, StepTimers
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.handles.values import ValueHandle
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.table import CHUNK_ROWS
from headwater.state.timers import TimerKey
from headwater.words import TimeDomain

KNOWN_FOR: Final = "known_for_ms"
"""The fact that says for how long keys are known, as the ends are stored; None for ever, missing where nobody told it."""


class DeduplicateOperator(KeepsTimers):
    """Runs one `deduplicate` on one subtask.

    Of each key it keeps until when it is known, and a timer that forgets it then: in event time if the row that went on
    has one, else in processing time. A row whose own time is not before that goes on, whether or not the timer has fired.

    Ends are stored as the ttl had it that the state began with. With another one they are that much later or earlier
    than they are stored, so that nothing has to be written anew.
    """

    needs_order = True

    def __init__(self, node: DeduplicateNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._key, self._ttl_ms = node.key, node.ttl_ms
        self._expired = 0
        self._cursor = Cursor()
        self._timers = StepTimers(step, node.key.type, self._cursor, backend=backend)
        states = [ValueState(KNOWN_UNTIL, "bigint")]
        self._entries, handles = open_states(states, step, node.key.type, self._cursor, backend=backend)
        handle = handles[KNOWN_UNTIL]
        assert isinstance(handle, ValueHandle)
        self._known_until = handle
        self._keep(handles)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._facts: dict[str, Any] = {KNOWN_FOR: self._ttl_ms}
        self._may_differ = False

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._take_over(time)
        places = self._new_keys(batch) if self._ttl_ms is None else self._first_in_time(batch, time)
        if len(places) == len(batch):
            emit(None, batch)
        elif places:
            emit(None, batch.take(np.array(places, np.int64)))

    def _new_keys(self, batch: Batch) -> list[int]:
        """The rows of keys that are not known; from now on they are."""
        groups = group(key_arrays(batch, self._key), len(batch))
        places = []
        keys = self._entries.fetch(keys_of(batch.take(groups.first), self._key))
        for place, key in zip(groups.first.tolist(), keys, strict=True):
            self._cursor.entry = self._entries.entry(key)
            if self._known_until.get() is None:
                self._known_until.set(MAX_TIMESTAMP)
                places.append(place)
        return sorted(places)

    def _first_in_time(self, batch: Batch, time: StepTime) -> list[int]:
        """The rows of keys that are not known, or not any more; each makes its key known for a time."""
        cursor, timers, known_until = self._cursor, self._timers, self._known_until
        stored_ms, later_ms = self._facts[KNOWN_FOR], self._later_ms()
        known, blank = self._entries.entries.get, self._entries.entry
        places = []
        rows = zip(self._entries.fetch(keys_of(batch, self._key)), batch.timestamps.tolist(), strict=True)
        for place, (key, timestamp) in enumerate(rows):
            cursor.entry = known(key) or blank(key)
            has_time = timestamp != MIN_TIMESTAMP
            moment = timestamp if has_time else time.now_ms
            until = known_until.get()
            if until is not None and moment < until + later_ms:
                continue
            until = min(moment + stored_ms, MAX_TIMESTAMP)
            known_until.set(until)
            (timers.event_time if has_time else timers.processing_time)(until)
            places.append(place)
        return places

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        self._take_over(time)
        if self._ttl_ms is not None:
            super().advance_watermark(self._as_stored(time), emit)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._take_over(time)
        if self._ttl_ms is not None:
            super().advance_clock(self._as_stored(time), emit)

    def _on_timers(self, domain: TimeDomain, due: Iterable[TimerKey], time: StepTime, emit: Emit) -> None:
        for timestamp, key in self._fetched(due, self._entries, domain, time):
            self._cursor.entry = self._entries.entry(key)
            if self._known_until.get() == timestamp:  # and not made known anew since
                self._known_until.clear()
                self._expired += 1

    def counters(self) -> dict[str, int]:
        expired, self._expired = self._expired, 0
        return {} if self._ttl_ms is None else {"state_expired": expired}

    # -- with another ttl ---------------------------------------------------------------------------------------------

    def _later_ms(self) -> int:
        """How much later keys are forgotten than it is stored."""
        return (self._ttl_ms or 0) - (self._facts[KNOWN_FOR] or 0)

    def _as_stored(self, time: StepTime) -> StepTime:
        """The times up to which ends that are stored have come; at the end of time all have."""
        later_ms = self._later_ms()
        watermark_ms, now_ms = (
            moment if moment == MAX_TIMESTAMP else min(max(moment - later_ms, MIN_TIMESTAMP), MAX_TIMESTAMP)
            for moment in (time.watermark_ms, time.now_ms)
        )
        return StepTime(watermark_ms, now_ms)

    def _take_over(self, time: StepTime) -> None:
        """Make of what another run has kept what this one would have; called before anything else that has a time."""
        if not self._may_differ:
            return
        self._may_differ = False
        if self._ttl_ms is None:
            for timers in (self._timers.event, self._timers.processing):
                for _ in timers.due(MAX_TIMESTAMP):  # each is taken out
                    pass
            self._facts = {KNOWN_FOR: None}
        elif self._facts.get(KNOWN_FOR) is None:
            self._know_from(time, self._ttl_ms)

    def _know_from(self, time: StepTime, ttl_ms: int) -> None:
        """Let keys that were known for ever be known for so long from here on: in event time if there is any.

        Where nobody told for how long they were known, ends are taken to be as they would be now.
        """
        known = self._known_until.dump()
        if KNOWN_FOR not in self._facts:
            known = known.filter(pa.array(known["value"].to_numpy() == MAX_TIMESTAMP))
        self._facts = {KNOWN_FOR: ttl_ms}
        by_events = MIN_TIMESTAMP < time.watermark_ms < MAX_TIMESTAMP
        register = self._timers.event_time if by_events else self._timers.processing_time
        until = min((time.watermark_ms if by_events else time.now_ms) + ttl_ms, MAX_TIMESTAMP)
        for start in range(0, len(known), CHUNK_ROWS):
            for key in self._entries.fetch(decode(known["key"].slice(start, CHUNK_ROWS))):
                self._cursor.entry = self._entries.entry(key)
                self._known_until.set(until)
                register(until)

    def meta(self) -> dict[str, Any]:
        return {**super().meta(), **self._facts}

    def set_meta(self, meta: dict[str, Any]) -> None:
        super().set_meta(meta)
        self._facts = {KNOWN_FOR: meta[KNOWN_FOR]} if KNOWN_FOR in meta else {}
        self._may_differ = True

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        facts = {KNOWN_FOR: metas[0][KNOWN_FOR]} if KNOWN_FOR in metas[0] else {}
        return {**super().merged_meta(metas, subtask, parallelism), **facts}

    def reset(self) -> None:
        super().reset()
        self._begin_anew()
