"""What the driver tells of a job's input, once, because it is likely a mistake that gives wrong results and no error."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headwater.epoch.reports import TaskReport
from headwater.moments import unit_meant
from headwater.task.counters import StepCounters

LOG = logging.getLogger("headwater.input")
_ENOUGH_ROWS = 100
"""So many rows without a value in a column say that it has another name; fewer may do so when there are no more."""


class Notices:
    """Hears the reports of every epoch of a run."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._ahead: set[str] = set()
        """The sources of which it was told that their event time is far ahead."""
        self._absent: dict[str, set[str]] = {}
        """Per source, the columns in which no row so far had a value."""
        self._rows: dict[str, int] = {}
        self._judged: set[str] = set()

    def hear(self, reports: Iterable[TaskReport]) -> None:
        """Take the reports of an epoch."""
        for report in reports:
            for uid in report.positions:
                self._hear(uid, report.steps[uid])
        for uid, rows in self._rows.items():
            if rows >= _ENOUGH_ROWS:
                self._judge(uid)

    def end(self) -> None:
        """The run is over: what was read is all there is."""
        for uid in self._rows:
            self._judge(uid)

    def _hear(self, uid: str, said: StepCounters) -> None:
        if said.furthest_ms is not None and uid not in self._ahead:
            self._ahead.add(uid)
            LOG.warning("%s", far_ahead(uid, said.furthest_ms), extra=self._about(uid))
        if said.rows_out and uid not in self._judged:
            self._rows[uid] = self._rows.get(uid, 0) + said.rows_out
            self._absent.setdefault(uid, set(said.absent)).intersection_update(said.absent)

    def _judge(self, uid: str) -> None:
        if uid not in self._judged and (absent := self._absent.pop(uid, None)):
            names, rows = ", ".join(map(repr, sorted(absent))), self._rows[uid]
            LOG.warning(
                "source %r: none of the first %d rows has a value in %s; its records may have another name for it: "
                "mend the schema, or leave the column out",
                uid,
                rows,
                names,
                extra=self._about(uid),
            )
        self._judged.add(uid)

    def _about(self, step: str) -> dict[str, str]:
        return {"job": self._job, "step": step}


def far_ahead(uid: str, timestamp_ms: int) -> str:
    """What is said of event time that is thousands of years ahead."""
    year = 1970 + timestamp_ms // 31_556_952_000
    way_out = unit_meant(timestamp_ms) or "mend such rows before the job: no later row moves the watermark"
    return f"source {uid!r}: event time is in year {year} (timestamp {timestamp_ms}); {way_out}"
