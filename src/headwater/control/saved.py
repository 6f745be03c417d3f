"""The savepoints of a job that lie in one folder, by name: listed, looked into, and checked."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import HeadwaterError, JobError
from headwater.graph.nodes.core import TTLS
from headwater.job.identity import JobIdentity
from headwater.job.state_view import StateView
from headwater.savepoints.files import DESCRIPTION, Savepoint

if TYPE_CHECKING:
    from headwater.savepoints.tables import SavedJob

NAME = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
"""What a savepoint may be called here: never a path."""
_MOST = 200
"""The newest are listed."""


@dataclass(frozen=True)
class SavedListing:
    """A savepoint, as a list shows it."""

    name: str
    path: str
    epoch: int
    taken_ms: int
    states: int
    rows: int
    size_bytes: int


@dataclass(frozen=True)
class Verdict:
    """What a check of a savepoint found."""

    name: str
    is_whole: bool
    text: str
    steps: dict[str, str]
    """By step, what becomes of what is saved of it in the program that the job last ran."""


class SavedHere:
    """The savepoints in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str) -> Path:
        """Where a savepoint of a name is; a name is one part of a path and nothing else."""
        if re.fullmatch(NAME, name) is None:
            raise JobError.bad_savepoint_name(name)
        return self.folder / name

    def listed(self, job_id: str) -> list[SavedListing]:
        """Those of a job, the newest first."""
        found = [path for path in self.folder.glob(f"*/{DESCRIPTION}") if re.fullmatch(NAME, path.parent.name)]
        found = sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)[:_MOST]
        listed = (self._listing(path.parent, job_id) for path in found)
        return [one for one in listed if one is not None]

    def _listing(self, path: Path, job_id: str) -> SavedListing | None:
        try:
            saved = Savepoint.open(path).description
        except HeadwaterError:  # it is being written, or something else
            return None
        if saved.job_id != job_id:
            return None
        states = [(step, name) for step in saved.steps.values() for name in step.states]
        return SavedListing(
            path.name,
            str(path),
            saved.epoch,
            (path / DESCRIPTION).stat().st_mtime_ns // 1_000_000,
            sum(not name.startswith("@") for _, name in states),
            sum(step.rows(name) for step, name in states if not name.startswith("@")),
            sum(file.size_bytes for file in saved.files()),
        )

    def look(self, name: str, step: str, state: str) -> StateView:
        """A state as it was saved."""
        saved = self._saved(name)
        return StateView(step, state, saved.epoch, saved[step, state].to_arrow())

    def check(self, name: str, job: JobIdentity) -> Verdict:
        """Read all of a savepoint against its checksums, and compare it with what the job kept when it last ran."""
        try:
            opened = Savepoint.open(self.path(name))
            for step in opened.description.steps.values():
                for file in (one for files in step.states.values() for one in files):
                    opened.read(file)
        except HeadwaterError as error:
            return Verdict(name, is_whole=False, text=str(error), steps={})
        kept = {uid: {**step.kept} for uid, step in opened.description.steps.items()}
        places = {uid: dict(step) for uid, step in job.shape["steps"].items()}
        steps = {uid: _fate(words, places.get(uid)) for uid, words in kept.items()}
        steps |= {uid: "starts empty" for uid in places if uid not in kept}
        given_up = [uid for uid, fate in steps.items() if fate == _GIVEN_UP]
        text = f"whole; {', '.join(given_up)} would be given up" if given_up else "whole, and every state has its place"
        return Verdict(name, is_whole=True, text=text, steps=steps)

    def _saved(self, name: str) -> SavedJob:
        from headwater.savepoints.tables import read

        return read(self.path(name))


_GIVEN_UP = "has no place any more"


def _fate(saved: dict[str, object], place: dict[str, object] | None) -> str:
    if place is None:
        return _GIVEN_UP
    facts = {name for name in (*saved, *place) if name not in ("level", "operation", "event time by", TTLS)}
    other = sorted(name for name in facts if saved.get(name) != place.get(name))
    return "goes on" if not other else f"goes on if it can be carried over: {', '.join(other)} differ"
