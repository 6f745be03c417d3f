"""The jobs that a server shows: those in the folders it was given, each by an id that is no path."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from headwater.control.saved import SavedHere
from headwater.control.view import job_folders
from headwater.control.watch import JobWatch
from headwater.serving.refused import Refused

_LOOK_S = 2.0
"""A new job is seen so much later at the latest, unless the folders are large."""
_SHARE = 20
"""Folders are looked through in at most one part of so many of the time."""
_ID_DIGITS = 12


@dataclass(frozen=True)
class WatchedJob:
    """A job, by its id."""

    id: str
    watch: JobWatch
    saved: SavedHere

    @property
    def path(self) -> Path:
        """The job folder."""
        return self.watch.layout.path


class WatchedJobs:
    """Looks for jobs below its folders, now and then."""

    def __init__(self, folders: Sequence[Path], savepoints: Path | None = None) -> None:
        """Savepoints are taken below `savepoints`; without it, below `savepoints` beside each job folder."""
        self._folders = [folder.absolute() for folder in folders]
        self._savepoints = savepoints
        self._lock = threading.Lock()
        self._known: dict[str, WatchedJob] = {}
        self._next_s = 0.0

    def all(self) -> list[WatchedJob]:
        """In the order of their paths."""
        with self._lock:
            if time.monotonic() >= self._next_s:
                self._look()
            return list(self._known.values())

    def find(self, job_id: str) -> WatchedJob:
        """The job of an id."""
        found = next((job for job in self.all() if job.id == job_id), None)
        if found is None:
            raise Refused(404, "there is no job of this id; GET /api/jobs lists them")
        return found

    def _look(self) -> None:
        began_s = time.monotonic()
        paths = {path for folder in self._folders for path in job_folders(folder)}
        found = {_id_of(path): path for path in sorted(paths)}
        self._known = {name: self._known.get(name) or self._watched(name, path) for name, path in found.items()}
        now_s = time.monotonic()
        self._next_s = now_s + max(_LOOK_S, _SHARE * (now_s - began_s))

    def _watched(self, name: str, path: Path) -> WatchedJob:
        return WatchedJob(name, JobWatch(path), SavedHere(self._savepoints or path.parent / "savepoints"))


def _id_of(path: Path) -> str:
    return hashlib.sha256(str(path).encode("utf-8", "surrogateescape")).hexdigest()[:_ID_DIGITS]
