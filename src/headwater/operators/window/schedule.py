"""When windows made of slices fire, and when their slices go."""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps
from headwater.operators.window.reach import check_reach
from headwater.windows.assigners import SlicedAssigner, Window


class SliceSchedule:
    """The windows and slices of a step that are to come, by event time. It follows from the slices there are."""

    def __init__(self, assigner: SlicedAssigner, lateness_ms: int) -> None:
        self._assigner, self._lateness_ms = assigner, lateness_ms
        self.reset()

    def reset(self) -> None:
        """Become as new."""
        self.watermark_ms = MIN_TIMESTAMP
        """Up to where windows have fired."""
        self._to_fire: list[tuple[int, int, int]] = []
        """A heap of windows. Of those of a slice the next is in it; when it has fired, the one behind it follows."""
        self._to_drop: list[tuple[int, int]] = []
        self._windows: set[Window] = set()
        self._slices: list[int] = []
        """Where the slices there are start, in order."""

    def expect(self, start: int) -> None:
        """A slice is there: its windows are to fire, and it is to be dropped."""
        at = bisect_left(self._slices, start)
        if self._slices[at : at + 1] == [start]:
            return
        self._slices.insert(at, start)
        heapq.heappush(self._to_drop, (self._dropped_at(start), start))
        windows = self._assigner.windows_of_slice(start)
        first = bisect_right(windows, self.watermark_ms, key=_last)
        if first < len(windows):
            self.expect_window(windows[first])

    def expect_window(self, window: Window) -> None:
        """A window is to fire."""
        if window not in self._windows:
            self._windows.add(window)
            heapq.heappush(self._to_fire, (window.last, window.start, window.end))

    def fire(self, watermark_ms: int) -> list[Window]:
        """The windows that the watermark passes now, earliest end first."""
        fired = []
        while self._to_fire and self._to_fire[0][0] <= watermark_ms:
            last, start, end = heapq.heappop(self._to_fire)
            window = Window(start, end)
            self._windows.discard(window)
            if last > self.watermark_ms:
                fired.append(window)
            following = self._assigner.window_after(window)
            if following is not None and self.has_slices(*following):
                self.expect_window(following)
        self.watermark_ms = max(self.watermark_ms, watermark_ms)
        return fired

    def drop(self, watermark_ms: int) -> Iterator[int]:
        """The slices that no window needs any more."""
        while self._to_drop and self._to_drop[0][0] <= watermark_ms:
            start = heapq.heappop(self._to_drop)[1]
            del self._slices[bisect_left(self._slices, start)]
            yield start

    def slices_within(self, start: int, end: int) -> list[int]:
        """Where the slices start that are there from one time on until another."""
        return self._slices[bisect_left(self._slices, start) : bisect_left(self._slices, end)]

    def has_slices(self, start: int, end: int) -> bool:
        """Whether there are such."""
        at = bisect_left(self._slices, start)
        return at < len(self._slices) and self._slices[at] < end

    def starts(self, batch: Batch, step: str) -> Timestamps:
        """Where the slice of each row starts."""
        return slice_starts(self._assigner, batch, step)

    def are_open(self, starts: Timestamps, watermark_ms: int) -> npt.NDArray[np.bool_]:
        """Whether a slice is part of a window that is not gone; a row between windows is in none."""
        open_starts = [s for s in np.unique(starts).tolist() if self._dropped_at(s) > watermark_ms]
        return np.isin(starts, np.array(open_starts, np.int64))

    def fired(self, start: int, watermark_ms: int) -> Sequence[Window]:
        """The windows of a slice that have fired and are kept."""
        windows = self._assigner.windows_of_slice(start)
        end = bisect_right(windows, watermark_ms, key=_last)
        return windows[bisect_right(windows, watermark_ms, hi=end, key=self.cleanup_time) : end]

    def _dropped_at(self, start: int) -> int:
        windows = self._assigner.windows_of_slice(start)
        return self.cleanup_time(windows[-1]) if windows else MIN_TIMESTAMP

    def cleanup_time(self, window: Window) -> int:
        """When a window is gone."""
        return min(window.last + self._lateness_ms, MAX_TIMESTAMP)


def _last(window: Window) -> int:
    return window.last


def slice_starts(assigner: SlicedAssigner, batch: Batch, step: str) -> Timestamps:
    """Where the slice of each row starts; every row must have a timestamp that windows reach."""
    check_reach(batch, assigner.size_ms, step)
    timestamps = batch.timestamps
    return timestamps - (timestamps - assigner.offset_ms) % assigner.slice_ms
