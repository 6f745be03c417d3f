"""The history of epochs: a line for each one that was computed, in a file of the job folder.

It is there to be looked at, and as a second copy of the offsets; a job does not need it to go on. So lines are not
forced to the disk: the last one may be torn or missing after a crash. An epoch that is computed again has a second
line, and the last one counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from typing import Any, Self

from headwater.durable import write_atomically
from headwater.epoch import offsets
from headwater.epoch.clock import wall_clock
from headwater.epoch.offset import BySplit, Offset
from headwater.epoch.reports import TaskReport, starts_of
from headwater.errors import JobFolderDamaged
from headwater.job.checkpoints.stored import Damage, StoredEpochs
from headwater.job.status import JobStatus, StepStatus
from headwater.versioned import Versioned

_PRUNE_AFTER_LINES = 256
"""Seldom enough to cost nothing, often enough for the file to stay small beside what Spark keeps."""


@dataclass(frozen=True)
class EpochLine(Versioned):
    """An epoch as it was computed."""

    epoch: int
    time_ms: int
    """When it was computed."""
    duration_ms: int
    offset: Offset
    """The one after it."""
    starts: BySplit
    """The positions before it."""
    steps: Mapping[str, StepStatus]
    stored_bytes: int
    """What a worker without a copy of the state has to read."""

    def _content(self) -> dict[str, Any]:
        steps = {uid: dict(step) for uid, step in self.steps.items()}
        return {**super()._content(), "offset": self.offset.to_json(), "steps": steps}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        steps = {uid: StepStatus.of(facts) for uid, facts in content["steps"].items()}
        return super()._of({**content, "offset": Offset.from_json(content["offset"], where), "steps": steps}, where)


class History:
    """The driver's side: adds a line for each epoch, and drops those of epochs that are no longer retained."""

    def __init__(self, path: Path, stored: StoredEpochs) -> None:
        self._path, self._stored = path, stored
        self._out: FileIO | None = None
        self._room = 0

    def add(self, batch: int, reports: Sequence[TaskReport], duration_ms: int) -> None:
        """Note an epoch, before it is committed."""
        if self._out is None or not self._room:
            self._open()
        assert self._out is not None
        line = _line(self._stored.offset(batch), reports, duration_ms)
        self._out.write(line.to_text().encode() + b"\n")
        self._room -= 1

    def close(self) -> None:
        """Let go of the file."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def _open(self) -> None:
        self.close()
        known = read_history(self._path)
        oldest = self._oldest()
        kept = [line.to_text() for epoch, line in known.items() if epoch >= oldest]
        if known:
            write_atomically(self._path, "".join(f"{line}\n" for line in kept).encode())
        self._out = FileIO(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), "a")
        self._room = _PRUNE_AFTER_LINES

    def _oldest(self) -> int:
        """The oldest epoch whose offsets are still there."""
        for batch in self._stored.logged():
            try:
                return self._stored.offset(batch).epoch - 1
            except Damage:  # then nothing can start from it
                continue
        return 0


def read_history(path: Path) -> dict[int, EpochLine]:
    """The lines by epoch, in order; a line that a crash has torn is passed over."""
    found: dict[int, EpochLine] = {}
    if path.exists():
        for text in path.read_text(errors="replace").splitlines():
            try:
                line = EpochLine.from_text(text, str(path))
            except JobFolderDamaged:
                continue
            found[line.epoch] = line
    return dict(sorted(found.items()))


def _line(offset: Offset, reports: Sequence[TaskReport], duration_ms: int) -> EpochLine:
    epoch = offsets.facts_of(offset).epoch
    written: dict[str, dict[str, int]] = {}
    for one in reports:
        for uid, states in one.changelog_bytes.items():
            of_step = written.setdefault(uid, {})
            for state, size in states.items():
                of_step[state] = of_step.get(state, 0) + size
    steps = JobStatus("running").after(epoch, reports).steps
    return EpochLine(
        epoch,
        wall_clock(epoch),
        duration_ms,
        offset,
        starts_of(reports),
        {uid: replace(step, changelog_bytes=written.get(uid, {}), late_rows=()) for uid, step in steps.items()},
        sum(one.stored_bytes for one in reports),
    )
