"""The line: a job's status in a few words, and how fast it goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from headwater.data.batch import MIN_TIMESTAMP
from headwater.job.progress.durations_text import long_text
from headwater.job.splits import Splits, holder_in
from headwater.job.status import JobStatus
from headwater.moments import moment_text

_RATE_S = 5.0
"""The time over which the speed is taken: short enough to follow, long enough to pass over the pause between epochs."""
UNKNOWN = "?"
"""Stands for how many rows are still to be read, when nobody could say."""


class Speed:
    """Rows a second, over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def at(self, now_s: float, rows: int) -> float:
        """The speed, when so many rows have been read by now."""
        self._seen.append((now_s, rows))
        while len(self._seen) > 2 and self._seen[1][0] <= now_s - _RATE_S:
            self._seen.popleft()
        then_s, before = self._seen[0]
        return (rows - before) / (now_s - then_s) if now_s > then_s else 0.0


def rows_read(status: JobStatus) -> int:
    """The rows that all sources have given in this run."""
    return sum(one.rows_in for splits in status.splits.values() for one in splits.values())


def running_line(
    job: str, status: JobStatus, speed: float, timed: Collection[str], waiting: int | str | None = None
) -> str:
    """What the job does now. `timed` are the sources with event time, `waiting` the rows that are still to be read."""
    if status.epoch < 0:
        return f"{job}: {'starting' if status.state == 'running' else status.state}"
    told = "" if status.state == "running" else f"{status.state}, "
    parts = [f"{job}: {told}epoch {status.epoch}", f"{rows_read(status):,} rows", f"{speed:,.0f}/s"]
    parts += _event_time(status, {uid: status.splits[uid] for uid in timed if uid in status.splits})
    if waiting is not None:
        parts.append(f"{waiting if isinstance(waiting, str) else format(waiting, ',')} rows to read")
    return ", ".join(parts)


def _event_time(status: JobStatus, splits: Splits) -> list[str]:
    """Where event time stands, how far it is behind the clock, and which of several splits holds it back."""
    holder = holder_in(splits)
    if holder is None:
        return []
    count = sum(len(found) for found in splits.values())
    held = f", held by {holder.uid}/{holder.split}" if count > 1 else ""
    at_ms = holder.status.watermark_ms
    if at_ms == MIN_TIMESTAMP:
        return [f"no event time yet{held}"]
    behind = "" if status.now_ms is None else f", {long_text(max(0, status.now_ms - at_ms))} behind"
    return [f"event time {moment_text(at_ms, millis=False)}{behind}{held}"]


def last_line(job: str, status: JobStatus, took_ms: int) -> str:
    """What the job has done."""
    epoch = "before its first epoch" if status.epoch < 0 else f"after epoch {status.epoch}"
    return f"{job}: {status.state} {epoch}, {rows_read(status):,} rows in {long_text(took_ms)}"
