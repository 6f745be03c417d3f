"""Spans of slices merged ahead: 8 slices in one table, 64 in one, and so on, so that a window of many merges few tables.

A span is made when a window first needs it, and again when one of its slices has changed. It depends on its slices alone,
not on when it was made, so results are the same in a copy that has not made it yet.
"""

from __future__ import annotations

import pyarrow as pa

from headwater.operators.window.schedule import SliceSchedule
from headwater.operators.window.slices import Merge, SliceTable
from headwater.state.shelf import KeptTable, Shelf
from headwater.windows.assigners import SlicedAssigner, Window

_BITS = 3
"""A span is made of 2 ** 3 smaller ones: with more of them windows merge more tables, with fewer, more is held twice."""

_Span = tuple[int, int]
"""How large it is, as a power of 8, and its number among those of this size."""


class Hierarchy:
    """The slices of windows, and the spans they make."""

    def __init__(
        self, assigner: SlicedAssigner, schedule: SliceSchedule, slices: SliceTable, merge: Merge, shelf: Shelf
    ) -> None:
        self._slice_ms, self._offset_ms = assigner.slice_ms, assigner.offset_ms
        self._schedule, self._slices, self._merge, self._shelf = schedule, slices, merge, shelf
        self._largest = max(0, (assigner.slices.bit_length() - 2) // _BITS)
        """Of the largest spans a window has two at least; one of less than 16 slices has none."""
        slices.watch(self._forget)
        self.reset()

    def reset(self) -> None:
        """Forget all spans."""
        self._spans: dict[_Span, KeptTable] = {}

    def _forget(self, start: int) -> None:
        """A slice has changed or is gone, and with it the spans that it is part of."""
        if self._spans:
            number = self._number(start)
            for size in range(1, self._largest + 1):
                self._spans.pop((size, number >> _BITS * size), None)

    def tables(self, window: Window) -> list[pa.Table]:
        """The tables that hold what a window does, in the order of time."""
        found: list[pa.Table] = []
        at, end = self._number(window.start), self._number(window.end)
        while at < end:
            size = self._largest
            while size and (at & (1 << _BITS * size) - 1 or at + (1 << _BITS * size) > end):
                size -= 1
            found += self._tables_of(size, at >> _BITS * size)
            at += 1 << _BITS * size
        return found

    def _tables_of(self, size: int, number: int) -> list[pa.Table]:
        if not size:
            return self._slices.tables(self._start(number))
        first, behind = number << _BITS * size, number + 1 << _BITS * size
        if not self._schedule.has_slices(self._start(first), self._start(behind)):
            return []
        span = self._spans.get((size, number))
        if span is None:
            parts = range(number << _BITS, number + 1 << _BITS)
            tables = [table for part in parts for table in self._tables_of(size - 1, part)]
            merged = self._merge(tables) if len(tables) > 1 else tables[0]
            span = self._spans[size, number] = KeptTable(merged, self._shelf)
        return [span.table]

    def _number(self, start: int) -> int:
        return (start - self._offset_ms) // self._slice_ms

    def _start(self, number: int) -> int:
        return number * self._slice_ms + self._offset_ms
