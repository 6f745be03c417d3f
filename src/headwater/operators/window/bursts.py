"""The rows of a batch as bursts: the sessions they make among themselves, aggregated by columns.

A burst then goes into the key's sessions as one element would, so that Python is called per burst and not per row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.aggregates.declared import is_in_any_order
from headwater.data.batch import Batch, Timestamps, timestamp_list
from headwater.data.rows import Row, decode
from headwater.errors import HeadwaterError
from headwater.functions import EVENT
from headwater.graph.nodes import WindowNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import StepTime
from headwater.operators.grouping import Codes, group
from headwater.operators.keys import key_arrays, keys_of
from headwater.operators.stateless.functions import rows_of
from headwater.operators.user_code import user_code_failed
from headwater.operators.window.late import MissedWindows
from headwater.operators.window.reach import check_reach
from headwater.operators.window.stretches import highest, put_together
from headwater.windows.assigners import InProcessingTime, Session, Window

Touching = Callable[[Any, Window], list[Window]]
"""Gives the sessions of a key that touch a window, in order of time."""


@dataclass(frozen=True, slots=True)
class Burst:
    """Rows of a key that belong together."""

    key_number: int
    key: Any
    window: Window
    first: Window
    """The window of the row that came first."""
    accumulators: tuple[Any, ...]
    grows: bool
    """Whether each of its rows touches those before it."""


@dataclass(frozen=True)
class Taken:
    """The rows of a batch: bursts by keys and then by time, rows that go one by one, and rows too late for anything."""

    bursts: list[Burst]
    singles: Codes
    late: Codes
    missed: MissedWindows


class Bursts:
    """Makes bursts of rows.

    Of a session that has fired, the rows of a burst make one update. Where each update shows, or the order of rows does,
    the rows of a key go one by one if one of them is behind the watermark, or if they join sessions that were apart; and
    always if one is so late that only a session that is there already may take it.
    """

    def __init__(self, node: WindowNode, step: str, row: type[Row]) -> None:
        assert node.aggregates is not None
        session = node.assigner.inner if isinstance(node.assigner, InProcessingTime) else node.assigner
        assert isinstance(session, Session)
        self._node, self._step, self._row, self._session = node, step, row, session
        self._aggregation = Aggregation(node.aggregates, node.input_schema, step)
        self._is_event_time = node.assigner.domain == EVENT
        self._is_in_any_order = is_in_any_order(node.aggregates)
        shows_updates = node.panes.mode != "accumulating" or node.panes.has_info
        self._is_exact = shows_updates or not self._is_in_any_order or not node.is_plain

    def of(self, batch: Batch, time: StepTime, touching: Touching) -> Taken:
        """What becomes of the rows, given the sessions that their keys have."""
        starts, ends = self._windows(batch, time.now_ms)
        groups = group(key_arrays(batch, self._node.key), len(batch))
        codes = groups.codes
        keys = list(keys_of(batch.take(groups.first), self._node.key))
        gone = (ends - 1 <= time.watermark_ms - self._node.lateness_ms) & self._is_event_time
        late = _lost(gone, _spans(starts, ends, codes), keys, touching) if gone.any() else gone
        single = np.isin(codes, codes[(ends - 1 <= time.watermark_ms if self._is_exact else gone) & ~late])
        if (gone & ~late).any():  # one by one they may turn out late as well, and late rows stay in order
            single, late = single | late, np.zeros_like(late)
        bursts: list[Burst] = []
        apart: list[int] = []
        inside = np.flatnonzero(~(single | late))
        if len(inside):
            spans = _spans(starts[inside], ends[inside], codes[inside])
            found = self._bursts(batch.table.take(pa.array(inside)), spans, keys)
            for number, several in groupby(found, attrgetter("key_number")):
                of_key = list(several)
                if self._is_in_any_order or _keep_order(of_key, touching):
                    bursts += of_key
                else:
                    apart.append(number)
        late_rows = np.flatnonzero(late)
        exist = np.ones(len(late_rows), np.bool_)
        missed = MissedWindows(starts[late_rows], ends[late_rows], exist)
        return Taken(bursts, np.flatnonzero((single | np.isin(codes, apart)) & ~late), late_rows, missed)

    def _windows(self, batch: Batch, now_ms: int) -> tuple[Timestamps, Timestamps]:
        """Where the windows of the rows start and end."""
        starts = batch.timestamps if self._is_event_time else np.full(len(batch), now_ms)
        if self._session.gap_ms is not None:
            gaps = np.full(len(batch), self._session.gap_ms)
        else:
            gaps = np.fromiter(self._gaps(batch), np.int64, len(batch))
        if self._is_event_time:
            check_reach(batch, int(gaps.max()), self._step)
        return starts, starts + gaps

    def _gaps(self, batch: Batch) -> Iterator[int]:
        keys, times = keys_of(batch, self._node.key), timestamp_list(batch.timestamps)
        for row, key, timestamp in zip(rows_of(batch.table, self._row), keys, times, strict=True):
            try:
                gap_ms = self._session.gap_of(row)
            except HeadwaterError:
                raise
            except BaseException as error:
                raise user_code_failed(error, self._step, key, timestamp) from None
            yield gap_ms

    def _bursts(self, table: pa.Table, spans: _Spans, keys: list[Any]) -> Iterator[Burst]:
        accumulators = self._aggregation.partial(table, spans.of, len(spans.starts))
        rows = zip(*(decode(column) for column in accumulators.columns), strict=True)
        windows = zip(spans.starts.tolist(), spans.ends.tolist(), strict=True)
        facts = zip(spans.keys.tolist(), spans.firsts.tolist(), spans.grow.tolist(), strict=True)
        for row, window, (number, first, grows) in zip(rows, windows, facts, strict=True):
            yield Burst(number, keys[number], Window(*window), Window(*first), row, grows)


@dataclass(frozen=True)
class _Spans:
    """Windows of rows put together where they touch, by keys and then by time."""

    of: Codes
    """The span of each row."""
    keys: Codes
    starts: Timestamps
    ends: Timestamps
    firsts: npt.NDArray[np.int64]
    """The window of the row of each that came first."""
    grow: npt.NDArray[np.bool_]
    """Whether each of its rows touches those before it."""


def _spans(starts: Timestamps, ends: Timestamps, codes: Codes) -> _Spans:
    made = put_together(starts, ends, codes)
    came = np.unique(made.of, return_index=True)[1]
    firsts = np.stack([starts[came], ends[came]], axis=1)
    return _Spans(made.of, made.keys, made.starts, made.ends, firsts, _grow(starts, ends, made.of, len(made)))


def _lost(gone: npt.NDArray[np.bool_], spans: _Spans, keys: list[Any], touching: Touching) -> npt.NDArray[np.bool_]:
    """Which of the rows whose windows are gone reach no other row and no session."""
    lost = np.bincount(spans.of, ~gone) == 0
    for place in np.flatnonzero(lost).tolist():
        window = Window(int(spans.starts[place]), int(spans.ends[place]))
        lost[place] = not touching(keys[spans.keys[place]], window)
    return np.asarray(lost[spans.of])


def _grow(starts: Timestamps, ends: Timestamps, bursts: Codes, count: int) -> npt.NDArray[np.bool_]:
    """Whether each row of a burst but the first touches those that came before it."""
    order = np.argsort(bursts, kind="stable")
    starts, ends, bursts = starts[order], ends[order], bursts[order]
    touches = np.ones(len(order), np.bool_)
    touches[1:] = (starts[1:] <= highest(ends, bursts)[:-1]) & (ends[1:] >= -highest(-starts, bursts)[:-1])
    touches[1:] |= bursts[1:] != bursts[:-1]
    return np.asarray(np.bincount(bursts[~touches], minlength=count) == 0)


def _keep_order(bursts: list[Burst], touching: Touching) -> bool:
    """Whether the bursts of a key put rows behind each other as the rows themselves do, which join sessions one by one."""
    joined: list[Window] = []
    for burst in bursts:
        own = touching(burst.key, burst.window)
        if not burst.grows or own != [session for session in own[:1] if session.touches(burst.first)]:
            return False
        joined += own
    return len(set(joined)) == len(joined)
