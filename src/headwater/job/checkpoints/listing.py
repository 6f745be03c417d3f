"""The retained checkpoints of a job folder: listed, inspected, checked and gone back to, without starting anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import JobError
from headwater.job.checkpoints import text
from headwater.job.checkpoints.history import read_history
from headwater.job.checkpoints.rewind import begin_rewind, finish_rewind, lost_plan, rewound_to
from headwater.job.checkpoints.stored import Damage
from headwater.job.folder import JobFolder
from headwater.job.reading import JobReader
from headwater.job.status import StepStatus


@dataclass(frozen=True)
class Checkpoint:
    """A committed epoch that a job can go on from: where its sources stood, and what is known of its steps."""

    job_dir: Path
    epoch: int
    time_ms: int
    """When it was computed."""
    now_ms: int
    """Processing time in it."""
    duration_ms: int | None
    """How long computing it took; None where its line in the history is lost, and then `steps` is empty too."""
    size_bytes: int
    """The bytes of state that it added."""
    stored_bytes: int | None
    """The bytes that a worker without a copy of the state has to read."""
    published: bool
    """Whether every sink has its rows."""
    ended: bool
    """Whether the input has come to its end in it."""
    positions: Mapping[str, Mapping[str, int]] = field(repr=False)
    """Per source uid and split: the position of the next row to read."""
    starts: Mapping[str, Mapping[str, int]] = field(repr=False)
    """The same before the epoch."""
    steps: Mapping[str, StepStatus] = field(repr=False)
    """Per step uid: rows_in, rows_out, late_dropped, dead_letters, watermark_ms, entries of state and changelog_bytes."""

    @property
    def watermarks(self) -> dict[str, int]:
        """Per step uid: its watermark in ms."""
        return {uid: step.watermark_ms for uid, step in self.steps.items()}

    def describe(self) -> str:
        """All that is known of it, as text."""
        return text.detail(self)

    def __str__(self) -> str:
        return self.describe()


class Checkpoints:
    """The checkpoints of a job folder that are retained and complete, oldest first, as they were when it was asked.

    `[epoch]` gives one; `damaged` holds the others that should be there, with what is wrong with them.
    """

    def __init__(self, job_dir: Path) -> None:
        self.job_dir = job_dir
        self._job = JobReader(job_dir)
        self._first_epoch = self._job.identity.first_epoch
        self._stored = self._job.stored()
        self._history = read_history(self._job.layout.epochs)
        self._found: dict[int, Checkpoint] = {}
        published = self._job.published().epoch
        damaged: dict[int, Damage] = {}
        last = rewound_to(self._job)
        for batch in self._stored.committed():
            epoch = batch + self._first_epoch
            if last is not None and epoch > last:
                break
            try:
                self._stored.check(batch, whole=False)
                self._found[epoch] = self._checkpoint(epoch, published)
            except Damage as damage:
                damaged[epoch] = damage
        # What cannot be used before the oldest that can is what Spark is about to remove.
        oldest = min(self._found, default=0)
        self._damaged = {epoch: damage for epoch, damage in damaged.items() if epoch > oldest or not self._found}

    @property
    def damaged(self) -> dict[int, str]:
        """The epochs that are committed and retained but cannot be gone on from, each with the reason."""
        return {epoch: str(damage) for epoch, damage in self._damaged.items()}

    @property
    def latest(self) -> Checkpoint:
        """The newest one."""
        if not self._found:
            raise JobError.no_checkpoint(str(self.job_dir), None, [])
        return self._found[max(self._found)]

    def __getitem__(self, epoch: int) -> Checkpoint:
        if epoch in self._damaged:
            raise self._error(epoch, self._damaged[epoch])
        if epoch not in self._found:
            raise JobError.no_checkpoint(str(self.job_dir), epoch, sorted(self._found))
        return self._found[epoch]

    def __iter__(self) -> Iterator[Checkpoint]:
        return iter(self._found.values())

    def __len__(self) -> int:
        return len(self._found)

    def describe(self) -> str:
        """A table with a line for each, as text."""
        return text.table(self.job_dir, self, self.damaged)

    def __str__(self) -> str:
        return self.describe()

    def check(self, epoch: int) -> None:
        """Read all of a checkpoint and compare it with its checksums; damage is raised, with the way out."""
        self[epoch]
        try:
            self._stored.check(self._batch(epoch), whole=True)
        except Damage as damage:
            raise self._error(epoch, damage) from None

    def rewind(self, epoch: int) -> Checkpoint:
        """Take the job back: the next start goes on after this checkpoint, and those after it are gone.

        The epochs after it are computed again from the same offsets. Sinks that have their rows are not given them
        again. A job that runs is refused.
        """
        folder = JobFolder(self.job_dir)
        try:
            finish_rewind(self._job)
            now = Checkpoints(self.job_dir)
            now.check(epoch)
            begin_rewind(now._job, now._stored, epoch, now._history)
            finish_rewind(self._job)
            return now[epoch]
        finally:
            folder.close()

    def _batch(self, epoch: int) -> int:
        """What Spark calls an epoch."""
        return epoch - self._first_epoch

    def _checkpoint(self, epoch: int, published: int) -> Checkpoint:
        batch = self._batch(epoch)
        offset = self._stored.offset(batch)
        line = self._history.get(epoch)
        return Checkpoint(
            job_dir=self.job_dir,
            epoch=epoch,
            time_ms=line.time_ms if line else self._stored.committed_ms(batch),
            now_ms=offset.now_ms,
            duration_ms=line.duration_ms if line else None,
            size_bytes=self._stored.size_bytes(batch),
            stored_bytes=line.stored_bytes if line else None,
            published=epoch <= published,
            ended=offset.end,
            positions=offset.positions,
            starts=line.starts if line else {},
            steps=line.steps if line else {},
        )

    def _error(self, epoch: int, damage: Damage) -> JobError:
        sound = self._newest_sound(epoch)
        return JobError.damaged_checkpoint(str(self.job_dir), epoch, str(damage.path), damage.problem, sound)

    def _newest_sound(self, before: int) -> int | None:
        """The newest checkpoint before an epoch that is whole to the last byte."""
        for epoch in sorted(self._found, reverse=True):
            if epoch < before:
                try:
                    self._stored.check(self._batch(epoch), whole=True)
                except Damage:
                    continue
                return epoch
        return None


def checkpoints(job_dir: str | os.PathLike[str]) -> Checkpoints:
    """The retained checkpoints of a job that runs, or has run, on Spark in this folder."""
    return Checkpoints(Path(job_dir).absolute())


def damage_of_newest(job_dir: Path, *, whole: bool) -> JobError | None:
    """Why a job cannot go on from where it is, with the way out; None when nothing is wrong with its newest checkpoint."""
    job = JobReader(job_dir)
    stored = job.stored()
    logged, committed = stored.logged(), stored.committed()
    newest = logged[-1] if logged else -1
    try:
        if logged:
            stored.offset(newest)
        if committed:
            newest = committed[-1]
            stored.check(newest, whole=whole)
    except Damage as damage:
        return Checkpoints(job_dir)._error(newest + job.identity.first_epoch, damage)
    return lost_plan(job, stored)
