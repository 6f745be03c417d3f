"""Which windows the rows of a batch belong to, by columns, where that depends on nothing but time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headwater.data.batch import MAX_TIMESTAMP, Batch
from headwater.functions import EVENT
from headwater.graph.nodes import WindowNode
from headwater.operators.contract import StepTime
from headwater.operators.grouping import Codes, group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.window.late import MissedWindows
from headwater.operators.window.pieces import Runs
from headwater.operators.window.schedule import slice_starts
from headwater.operators.window.scope import Scope, scope_of
from headwater.windows.assigners import GLOBAL, SlicedAssigner, Window


@dataclass(frozen=True)
class Assigned:
    """The rows of a batch by key and window, in the order in which these first came; and those that are in no window."""

    runs: Runs
    scopes: list[Scope]
    nowhere: Codes
    missed: MissedWindows


class Assignment:
    """Assigns the windows of a step."""

    def __init__(self, node: WindowNode, step: str) -> None:
        self._node, self._step, self._assigner = node, step, node.assigner

    def of(self, batch: Batch, time: StepTime) -> Assigned:
        """The open windows of each row; which are open depends on the watermark that stood when the epoch began."""
        spans, at = self._spans(batch, time.now_ms)
        open_spans = [[w for w in windows if not self._is_gone(w, time.watermark_ms)] for windows in spans]
        numbers = {window: n for n, window in enumerate(dict.fromkeys(w for windows in open_spans for w in windows))}
        flat = np.array([numbers[w] for windows in open_spans for w in windows], np.int64)
        counts = np.array([len(windows) for windows in open_spans], np.int64)
        firsts, of_row = np.cumsum(counts) - counts, counts[at]
        rows = np.repeat(np.arange(len(batch)), of_row)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(of_row) - of_row, of_row)
        windows = flat[firsts[at][rows] + nth]
        nowhere = np.flatnonzero(of_row == 0)
        runs, scopes = self._runs(batch, rows, windows, list(numbers))
        return Assigned(runs, scopes, nowhere, _missed(spans, at[nowhere]))

    def _spans(self, batch: Batch, now_ms: int) -> tuple[list[Sequence[Window]], Codes]:
        """Lists of windows, and for each row which of the lists has its own."""
        assigner = self._assigner
        if isinstance(assigner, SlicedAssigner):
            slices, at = np.unique(slice_starts(assigner, batch, self._step), return_inverse=True)
            return [assigner.windows_of_slice(start) for start in slices.tolist()], at
        return [list(assigner.assign(None, now_ms))], np.zeros(len(batch), np.int64)

    def _is_gone(self, window: Window, watermark_ms: int) -> bool:
        is_event_time = self._assigner.domain == EVENT
        return is_event_time and min(window.last + self._node.lateness_ms, MAX_TIMESTAMP) <= watermark_ms

    def _runs(self, batch: Batch, rows: Codes, windows: Codes, known: list[Window]) -> tuple[Runs, list[Scope]]:
        by_key = group(key_arrays(batch, self._node.key), len(batch))
        keys = list(keys_of(batch.take(by_key.first), self._node.key))
        _, first, codes = np.unique(
            by_key.codes[rows] * max(1, len(known)) + windows, return_index=True, return_inverse=True
        )
        came = np.argsort(first)
        place = np.empty_like(came)
        place[came] = np.arange(len(came))
        first = first[came]
        pairs = zip(by_key.codes[rows[first]].tolist(), windows[first].tolist(), strict=True)
        return Runs.by(place[codes], len(first), rows), [scope_of(keys[key], known[window]) for key, window in pairs]


def _missed(spans: list[Sequence[Window]], at: Codes) -> MissedWindows:
    """The last windows of rows; the window of everything has no bounds to show."""
    lasts = [windows[-1] if windows and windows[-1] != GLOBAL else None for windows in spans]
    edges = np.array([last or (0, 0) for last in lasts], np.int64)[at]
    return MissedWindows(edges[:, 0], edges[:, 1], np.array([last is not None for last in lasts])[at])
