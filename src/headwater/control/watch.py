"""A job that is looked at again and again: what has not changed is not read twice."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from headwater.control.pages import EpochPages
from headwater.control.view import JobView, job
from headwater.job.durations import EpochDurations, read_durations
from headwater.job.layout import JobLayout
from headwater.job.lock import owner_of
from headwater.job.outline import JobOutline
from headwater.job.reading import JobReader

_LOG_BYTES = 64 << 10
"""Of the end of a log, to be shown."""


class JobWatch:
    """The job in a folder, for somebody who asks often. May be asked from several threads."""

    def __init__(self, job_dir: Path) -> None:
        self.reader = JobReader(job_dir)
        self.layout: JobLayout = self.reader.layout
        self._pages = EpochPages(self.layout.epochs)
        self._lock = threading.Lock()
        self._seen: tuple[object, ...] = ()
        self._view: JobView | None = None
        self._outline: tuple[object, JobOutline | None] = ((), None)
        self._durations: tuple[object, dict[int, EpochDurations]] = ((), {})

    def view(self) -> JobView:
        """The job now; the same object as before when nothing has happened."""
        layout = self.layout
        files = (layout.job, layout.status, layout.restarts, layout.outbox.published)
        with self._lock:
            now = (owner_of(layout.lock), self.reader.stored().changed_ns(), *map(_stamp, files))
            if self._view is None or now != self._seen:
                self._view, self._seen = job(layout.path), now
            return self._view

    def outline(self) -> JobOutline | None:
        """What the last run is; None where its driver has not told."""
        with self._lock:
            now = _stamp(self.layout.outline)
            if now != self._outline[0]:
                self._outline = now, self.reader.outline()
            return self._outline[1]

    def durations(self) -> dict[int, EpochDurations]:
        """How long the parts of the newest epochs took."""
        with self._lock:
            now = _stamp(self.layout.durations)
            if now != self._durations[0]:
                self._durations = now, read_durations(self.layout.durations)
            return self._durations[1]

    @property
    def pages(self) -> EpochPages:
        """The history of epochs."""
        return self._pages

    def unpublished(self) -> list[int]:
        """The epochs that wait to be published, oldest first."""
        return self.layout.outbox.epochs()

    def log_tail(self) -> list[str]:
        """The last lines of what the job has logged, where `headwater run` runs it."""
        try:
            with self.layout.log.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(0, size - _LOG_BYTES))
                lines = log.read(_LOG_BYTES).decode(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return lines[1:] if size > _LOG_BYTES else lines


def _stamp(path: Path) -> tuple[int, int, int] | None:
    """What tells that a file, or what a folder lists, has changed."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_ino, about.st_mtime_ns, about.st_size
