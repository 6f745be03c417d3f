"""Deduplication: the first row of each key goes on, and the key is known until its time is over."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from headwater.data.rows import Row
from headwater.descriptors import ValueState
from headwater.graph.nodes import DeduplicateNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.timers import KeepsTimers, StepTimers
from headwater.state.backend import StateBackend
from headwater.state.handles.opening import open_states
from headwater.state.handles.values import ValueHandle
from headwater.state.memory import Cursor
from headwater.state.memory_backend import MEMORY
from headwater.state.timers import TimerKey
from headwater.words import TimeDomain


class DeduplicateOperator(KeepsTimers):
    """Runs one `deduplicate` on one subtask.

    Of each key it keeps until when it is known, and a timer that forgets it then: in event time if the row that went on
    has one, else in processing time. A row whose own time is not before that goes on, whether or not the timer has fired.
    """

    needs_order = True

    def __init__(self, node: DeduplicateNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._key, self._ttl_ms = node.key, node.ttl_ms
        self._expired = 0
        self._cursor = Cursor()
        self._timers = StepTimers(step, node.key.type, self._cursor, backend=backend)
        states = [ValueState("known_until", "bigint")]
        self._entries, handles = open_states(states, step, node.key.type, self._cursor, backend=backend)
        handle = handles["known_until"]
        assert isinstance(handle, ValueHandle)
        self._known_until = handle
        self._keep(handles)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        places = self._new_keys(batch) if self._ttl_ms is None else self._first_in_time(batch, self._ttl_ms, time)
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

    def _first_in_time(self, batch: Batch, ttl_ms: int, time: StepTime) -> list[int]:
        """The rows of keys that are not known, or not any more; each makes its key known for a time."""
        cursor, timers, known_until = self._cursor, self._timers, self._known_until
        known, blank = self._entries.entries.get, self._entries.entry
        places = []
        rows = zip(self._entries.fetch(keys_of(batch, self._key)), batch.timestamps.tolist(), strict=True)
        for place, (key, timestamp) in enumerate(rows):
            cursor.entry = known(key) or blank(key)
            has_time = timestamp != MIN_TIMESTAMP
            moment = timestamp if has_time else time.now_ms
            until = known_until.get()
            if until is not None and moment < until:
                continue
            until = min(moment + ttl_ms, MAX_TIMESTAMP)
            known_until.set(until)
            (timers.event_time if has_time else timers.processing_time)(until)
            places.append(place)
        return places

    def _on_timers(self, domain: TimeDomain, due: Iterable[TimerKey], time: StepTime, emit: Emit) -> None:
        for timestamp, key in self._fetched(due, self._entries, domain, time):
            self._cursor.entry = self._entries.entry(key)
            if self._known_until.get() == timestamp:  # and not made known anew since
                self._known_until.clear()
                self._expired += 1

    def counters(self) -> dict[str, int]:
        expired, self._expired = self._expired, 0
        return {} if self._ttl_ms is None else {"state_expired": expired}
