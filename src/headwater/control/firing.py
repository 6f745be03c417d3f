"""Why has this window not fired: which split holds event time back, since when, and what can be done about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.durations import duration_text
from headwater.errors import JobError
from headwater.job.outline import JobOutline, OutlineStep, OutlineWatermarks
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus

FIRED, WAITS, ENDED, UNKNOWN = "fired", "waits", "ended", "unknown"
SILENT, OLD_ROWS, ADVANCING, NEVER, NO_EVENT_TIME = "silent", "old rows", "advancing", "no rows yet", "no event time"
ALIGNED = "held by alignment"
_PATIENCE_MS = 5_000
"""A split that had rows, or moved, within that time is on its way."""

_MOST = 100
"""Splits that are told of, the slowest ones: a topic may have thousands."""


@dataclass(frozen=True)
class Holding:
    """A split whose watermark has not reached the end of the window."""

    source: str
    split: str
    watermark_ms: int | None
    """None before its first row."""
    missing_ms: int | None
    """How much event time is missing in it."""
    since_ms: int | None
    """Since when its watermark stands; None when it moves, or has not been seen to move."""
    last_rows_ms: int | None
    reason: str
    """One word of: silent, old rows, advancing, no rows yet, no event time, held by alignment."""
    way_out: str


@dataclass(frozen=True)
class Firing:
    """What is to be said of a window of a step that ends at a time."""

    step: str
    window: str
    start_ms: int | None
    end_ms: int | None
    """The last timestamp of the window is one millisecond earlier."""
    watermark_ms: int | None
    """Where the step's event time stands."""
    missing_ms: int | None
    verdict: str
    """One word of: fired, waits, ended, unknown."""
    because: str
    holding: tuple[Holding, ...] = ()
    """The splits that hold it back, the slowest first."""


def why_not_fired(
    status: JobStatus, outline: JobOutline, uid: str, end_ms: int | None, *, now_ms: int, is_running: bool
) -> Firing:
    """What keeps a window from firing: the one that ends at `end_ms`, or the next one that is to fire."""
    step = outline.step(uid)
    if step is None or step.window is None:
        known = [one.uid for one in outline.steps if one.window is not None]
        raise JobError.no_windows(uid, known)
    told = status.steps.get(uid)
    mark_ms = MIN_TIMESTAMP if told is None else told.watermark_ms
    window = step.window
    if not window.in_event_time:
        text = "its windows do not go by event time: its trigger fires them, whatever watermarks say"
        return Firing(uid, window.text, None, None, _shown(mark_ms), None, UNKNOWN, text)
    if end_ms is None:
        end_ms = _next_end(step, mark_ms, status)
    start_ms = end_ms - window.size_ms if end_ms is not None and window.size_ms is not None else None
    made = (uid, window.text, start_ms, end_ms, _shown(mark_ms))
    if mark_ms >= MAX_TIMESTAMP:
        return Firing(*made, None, ENDED, "its input has ended, and every window has fired")
    if end_ms is not None and mark_ms >= end_ms - 1:
        kept = f", and is kept for late rows for {duration_text(window.lateness_ms)}" if window.lateness_ms else ""
        return Firing(*made, 0, FIRED, f"event time is past its end: it has fired, if it had rows{kept}")
    missing_ms = None if end_ms is None or mark_ms <= MIN_TIMESTAMP else end_ms - 1 - mark_ms
    holding = _holding(status, outline, step, end_ms, now_ms)
    return Firing(*made, missing_ms, WAITS, _because(step, holding, is_running=is_running), holding)


def _next_end(step: OutlineStep, mark_ms: int, status: JobStatus) -> int | None:
    """The end of the window that event time reaches next, where windows are at even distances."""
    assert step.window is not None
    every_ms = step.window.every_ms
    if every_ms is None or mark_ms >= MAX_TIMESTAMP:
        return None
    if mark_ms <= MIN_TIMESTAMP:  # then it is the one that the furthest split is in
        ahead = [one.watermark_ms for uid in step.times_from for one in status.splits.get(uid, {}).values()]
        mark_ms = max((at for at in ahead if MIN_TIMESTAMP < at < MAX_TIMESTAMP), default=MIN_TIMESTAMP)
        if mark_ms == MIN_TIMESTAMP:
            return None
    some_end_ms = step.window.offset_ms + (step.window.size_ms or 0)
    return ((mark_ms + 1 - some_end_ms) // every_ms + 1) * every_ms + some_end_ms


def _holding(
    status: JobStatus, outline: JobOutline, step: OutlineStep, end_ms: int | None, now_ms: int
) -> tuple[Holding, ...]:
    found: list[tuple[int, Holding]] = []
    for uid in step.times_from:
        origin = outline.step(uid)
        if origin is None or not origin.is_source:
            continue
        splits: Mapping[str, SplitStatus] = status.splits.get(uid) or {"": SplitStatus()}
        for name, split in splits.items():
            if not split.counts or (end_ms is not None and split.watermark_ms >= end_ms - 1):
                continue
            found.append((split.watermark_ms, _held(origin, name, split, end_ms, status, now_ms=now_ms)))
    slowest = sorted(found, key=lambda pair: pair[0])[:_MOST]
    return tuple(one for _, one in slowest)


def _held(
    source: OutlineStep, name: str, split: SplitStatus, end_ms: int | None, status: JobStatus, *, now_ms: int
) -> Holding:
    marks = source.watermarks
    reason = _reason(marks, split, now_ms)
    stands = reason in (SILENT, OLD_ROWS)
    began = split.watermark_ms > MIN_TIMESTAMP
    return Holding(
        source.uid,
        name,
        _shown(split.watermark_ms),
        end_ms - 1 - split.watermark_ms if began and end_ms is not None else None,
        (split.moved_ms or status.since_ms) if stands else status.since_ms if reason == NEVER else None,
        split.last_rows_ms,
        reason,
        _way_out(source, reason),
    )


def _reason(marks: OutlineWatermarks | None, split: SplitStatus, now_ms: int) -> str:
    if marks is None or marks.column is None:
        return NO_EVENT_TIME
    if split.watermark_ms <= MIN_TIMESTAMP and split.last_rows_ms is None:
        return NEVER
    if split.moved_ms is not None and now_ms - split.moved_ms <= _PATIENCE_MS:
        return ADVANCING
    if split.last_rows_ms is not None and now_ms - split.last_rows_ms <= _PATIENCE_MS:
        return OLD_ROWS
    return ALIGNED if marks.group is not None else SILENT


def _way_out(source: OutlineStep, reason: str) -> str:
    marks = source.watermarks
    column = None if marks is None else marks.column
    idle = (
        "give it rows, or let nobody wait for a split without rows: .with_idleness('30 s') on the source's watermarks"
    )
    if marks is not None and marks.idle_ms is not None:
        idle = f"nobody waits for it once it has been without rows for {duration_text(marks.idle_ms)}"
    texts = {
        NO_EVENT_TIME: "name a column that event time is taken from: hw.Watermarks.bounded('ts', '5 s')",
        NEVER: idle,
        SILENT: idle,
        ADVANCING: "nothing: it moves, and the window fires when it is past the end",
        OLD_ROWS: f"rows come, and none is later than those before: see that the times in {column!r} go up",
        ALIGNED: "it waits for the slowest split of its alignment group, or is without rows: look at the others",
    }
    return texts[reason]


def _because(step: OutlineStep, holding: tuple[Holding, ...], *, is_running: bool) -> str:
    if not is_running:
        return "the job does not run: event time goes on when it does"
    if not holding:
        anew = [uid for uid in step.times_from if uid != step.uid]
        if not anew:
            return "no source gives it event time"
        return (
            "no split holds it back: its event time follows in one of the next epochs, or when an idle split has rows"
        )
    first = holding[0]
    words = {
        NO_EVENT_TIME: "has no event time, so windows fire only when the input ends",
        NEVER: "has had no row yet",
        SILENT: "has had no rows since, and everybody waits for it",
        OLD_ROWS: "has rows, but none that is later than those before",
        ADVANCING: "is the slowest, and it moves",
        ALIGNED: "stands, in a group of splits that wait for each other",
    }
    where = f"split {first.split!r} of source {first.source!r}" if first.split else f"source {first.source!r}"
    return f"{where} {words[first.reason]}"


def _shown(watermark_ms: int) -> int | None:
    return None if watermark_ms <= MIN_TIMESTAMP else watermark_ms
