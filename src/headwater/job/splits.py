"""The splits of a job's sources at a moment, as the reports of their tasks tell it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.epoch.reports import TaskReport
from headwater.job.watermark_text import mark_text
from headwater.moments import moment_text


@dataclass(frozen=True)
class SplitStatus:
    """A split of a source."""

    rows_in: int = 0
    """What was read of it in this run."""
    watermark_ms: int = MIN_TIMESTAMP
    """How far event time has come in it; the maximum when it has ended."""
    is_idle: bool = False
    """Whether it has been without rows for so long that nobody waits for it."""
    last_rows_ms: int | None = None
    """The time of the newest epoch, of this run, in which it had rows."""
    moved_ms: int | None = None
    """The time of the newest epoch, of this run, in which its watermark went on."""

    def __repr__(self) -> str:
        idle, last_ms = " idle" if self.is_idle else "", self.last_rows_ms
        last = "never" if last_ms is None else moment_text(last_ms)
        return f"<SplitStatus rows_in={self.rows_in} watermark={mark_text(self.watermark_ms)}{idle} last rows {last}>"

    @property
    def counts(self) -> bool:
        """Whether event time waits for it."""
        return not self.is_idle and self.watermark_ms != MAX_TIMESTAMP


Splits = Mapping[str, Mapping[str, SplitStatus]]
"""By source uid and split."""


def splits_after(known: Splits, reports: Iterable[TaskReport], now_ms: int | None) -> Splits:
    """The splits after an epoch, of which their tasks tell."""
    found = {uid: dict(splits) for uid, splits in known.items()}
    for one in reports:
        for uid, positions in one.positions.items():
            rows, mark_ms = one.steps[uid].rows_in, one.steps[uid].watermark_ms
            for split in positions:
                before = found.setdefault(uid, {}).get(split, SplitStatus())
                found[uid][split] = SplitStatus(
                    before.rows_in + rows,
                    max(before.watermark_ms, mark_ms),
                    one.idle,
                    now_ms if rows else before.last_rows_ms,
                    now_ms if mark_ms > before.watermark_ms else before.moved_ms,
                )
    return found


@dataclass(frozen=True)
class Holder:
    """The split that event time waits for."""

    uid: str
    split: str
    status: SplitStatus


def holder_in(splits: Splits) -> Holder | None:
    """The split that is behind all others; None when every one has ended or is idle."""
    found = [Holder(uid, split, one) for uid, own in splits.items() for split, one in own.items() if one.counts]
    return min(found, key=lambda one: one.status.watermark_ms, default=None)
