"""What states with a ttl share: what is kept has its time beside it, and is removed when that is long enough ago.

Removing is done when the clock moves, before anything is read, so that reads find nothing that has expired and need not
look. What is removed depends on what is kept and on the clock alone, not on how the copy came to be.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP
from headwater.descriptors import MapState, StateDeclaration
from headwater.expiry import Ttl
from headwater.state.handles.slot import Slot
from headwater.state.memory import WRITTEN, Entry
from headwater.state.table import CHUNK_ROWS, StateTable
from headwater.state.time_index import TimeIndex

Timed = tuple[Any, int | None]
"""A value, and when it was written; None until somebody knows what time it is."""
_DEAD = 1024
"""So many items that name nothing any more may be in an index before it is made again."""


def as_kept(declaration: StateDeclaration) -> StateDeclaration:
    """The state as a backend keeps it: with a ttl, each value is there beside its time."""
    if declaration.ttl is None:
        return declaration
    found = copy.copy(declaration)
    found.ttl = None
    place = "value_type" if isinstance(declaration, MapState) else "type"
    fields = [pa.field("value", getattr(declaration, place)), pa.field("written_ms", pa.int64())]
    setattr(found, place, pa.struct(fields))
    return found


class ExpiringSlot(Slot):
    """A state with a ttl. Those that extend it say what its items are: keys, or entries of the maps of keys."""

    _ttl: Ttl
    _times: TimeIndex
    _now_ms: int | None = None
    """What time it is; None before event time has begun."""
    _dead = 0
    """How many items were removed that the index still names."""

    def expires(self, ttl: Ttl, times: TimeIndex) -> None:
        """Forget what is older; called once, when the state is opened."""
        self._ttl, self._times = ttl, times

    @property
    def clock(self) -> str:
        """What time means here."""
        return self._ttl.clock

    def advance(self, now_ms: int) -> int:
        """It is this late. Gives how many items were removed."""
        if self._now_ms is not None and now_ms <= self._now_ms:
            return 0
        self._now_ms = now_ms
        if untimed := self._times.untimed():
            for item in self._in_order(untimed):
                self._set_time(item)
        due = self._times.until(now_ms - self._ttl.ms)
        items = self._in_order(due) if due else []
        slices = (items[start : start + CHUNK_ROWS] for start in range(0, len(items), CHUNK_ROWS))
        return sum(self._remove_older(now_ms - self._ttl.ms, some) for some in slices)

    def _in_order(self, items: Iterable[Any]) -> Sequence[Any]:
        """Items, each once, in an order that depends on them alone."""
        return self._layout.sorted_keys(dict.fromkeys(items))

    def _set_time(self, item: Any) -> None:
        """Let an item that was written when nobody knew the time be written now, if it is there."""
        raise NotImplementedError

    def _remove_older(self, until_ms: int, items: Sequence[Any]) -> int:
        """Remove of items what was written at a time or before; name the rest of them to the index again."""
        raise NotImplementedError

    def _name_all(self) -> None:
        """Name all items to the index."""
        raise NotImplementedError

    def _settle(self, written: list[Entry], size_bytes: int) -> None:
        super()._settle(written, size_bytes)
        if self._dead > _DEAD and 2 * self._dead > len(self._times):
            self._times.clear()
            self._dead = 0
            self._name_all()

    def _note_written(self, entry: Entry) -> None:
        if not entry[self._mark] & WRITTEN:
            self._mark_written(entry)

    def clear_all(self) -> None:
        super().clear_all()
        self._times.clear()
        self._now_ms, self._dead = None, 0


class Expiry:
    """The states of a step that expire. It is told the time, and counts what is gone."""

    def __init__(self, tables: Iterable[StateTable]) -> None:
        self._states = [table for table in tables if isinstance(table, ExpiringSlot)]
        self._by_events = [state for state in self._states if state.clock == "event"]
        self._by_clock = [state for state in self._states if state.clock != "event"]
        self._count = 0

    def at(self, now_ms: int) -> None:
        """Processing time has come here."""
        for state in self._by_clock:
            self._count += state.advance(now_ms)

    def at_event_time(self, timestamp: int) -> None:
        """Event time has come here."""
        if self._by_events and timestamp > MIN_TIMESTAMP:
            for state in self._by_events:
                self._count += state.advance(timestamp)

    def counters(self) -> dict[str, int]:
        """How much has expired since the last call, where something can."""
        count, self._count = self._count, 0
        return {"state_expired": count} if self._states else {}
