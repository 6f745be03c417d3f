"""The handles of value, reducing and aggregating state with a ttl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.state.handles.expiring import ExpiringSlot, Timed
from headwater.state.handles.values import AggregatingHandle, CopiedValueHandle, ReducingHandle, ValueHandle
from headwater.state.memory import Entry
from headwater.state.table import PUT, REMOVE


class ExpiringValueHandle(ExpiringSlot, ValueHandle):
    """Value state with a ttl; also what reducing and aggregating state with one are made of."""

    def get(self) -> Any:
        entry = self._cursor.entry
        kept: Timed | None = entry[self._value]
        if kept is None:
            return self._default
        if self._ttl.counts_reads and kept[1] != self._now_ms:
            entry[self._value] = (kept[0], self._now_ms)
            self._note_written(entry)
        return kept[0]

    def set(self, value: Any) -> None:
        if value is None:
            self.clear()
            return
        if type(value) is not self._exact:
            value = self._converted(self._convert, value)
        entry = self._cursor.entry
        if entry[self._value] is None:
            self._times.add(self._now_ms, entry[0])
        entry[self._value] = (value, self._now_ms)
        self._note_written(entry)

    def clear(self) -> None:
        entry = self._cursor.entry
        if entry[self._value] is not None:
            self._dead += 1
            self._remove(entry)

    def _remove(self, entry: Entry) -> None:
        entry[self._value] = None
        self._note_written(entry)

    def _set_time(self, item: Any) -> None:
        entry = self._table.entry(item)
        kept: Timed | None = entry[self._value]
        if kept is not None:
            self._times.add(self._now_ms if kept[1] is None else kept[1], item)
            if kept[1] is None:
                entry[self._value] = (kept[0], self._now_ms)
                self._note_written(entry)

    def _remove_older(self, until_ms: int, items: Sequence[Any]) -> int:
        removed = 0
        for key in self._table.fetch(items):
            entry = self._table.entry(key)
            kept: Timed | None = entry[self._value]
            if kept is None:
                self._dead -= 1
            elif kept[1] is None or kept[1] > until_ms:
                self._times.add(kept[1], key)
            else:
                self._remove(entry)
                removed += 1
        return removed

    def _name_all(self) -> None:
        for key, kept in self._table.scan(self._index):
            self._times.add(kept[1], key)

    def _changes_of(self, written: list[Entry]) -> pa.Table:
        kept = [entry[self._value] or (None, None) for entry in written]
        ops = [REMOVE if entry[self._value] is None else PUT for entry in written]
        values, times = zip(*kept, strict=True)
        return self._layout.table(ops, [entry[0] for entry in written], values, times)

    def _rows(self, held: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, ...]]:
        for key, (value, time_ms) in held:
            yield key, value, time_ms

    def _loaded(self, keys: Sequence[Any], values: Sequence[Any], times: Sequence[Any] = ()) -> Sequence[Any]:
        for key, time_ms in zip(keys, times, strict=True):
            self._times.add(time_ms, key)
        return list(zip(values, times, strict=True))

    def _apply(self, rows: Iterable[tuple[Any, ...]]) -> None:
        for op, key, value, time_ms in rows:
            entry = self._take_over(key)
            if op == PUT:
                if entry[self._value] is None:
                    self._times.add(time_ms, key)
                entry[self._value] = (value, time_ms)
            elif entry[self._value] is not None:
                self._dead += 1
                entry[self._value] = None


class ExpiringCopiedValueHandle(CopiedValueHandle, ExpiringValueHandle):
    """Value state with a ttl whose values can be changed in place."""


class ExpiringReducingHandle(ReducingHandle, ExpiringValueHandle):
    """Reducing state with a ttl."""


class ExpiringAggregatingHandle(AggregatingHandle, ExpiringValueHandle):
    """Aggregating state with a ttl."""
