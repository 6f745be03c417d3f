"""The epoch protocol: what a job does with its sources and sinks, and in which order, from its start to its end.

1. `begin`: sources check themselves, then the engine makes the job its own.
2. `recover`: sinks are taken over and opened, committed epochs are published, all others discarded.
3. `prepare`, for each epoch: steps 1 to 3, after which a manifest names what it has staged.
4. The commit, which is the engine's: from there on the epoch counts.
5. `publish_committed`: steps 4 to 7, after which every sink has the epoch and nothing is left of it.
6. `flush` and `close`, when the job has come to its end. After a failure, `recover` again.

Nothing outside sees an epoch before it is committed, unless the job is at-least-once, and a committed epoch that was not
published is published first thing after a restart.

Both engines drive it. One prepares on one thread and publishes on another: no lock is held while either works, and
epochs are prepared while earlier ones are published, up to a limit. All else is done while neither goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headwater.epoch.manifest import Manifest, Published
from headwater.epoch.offset import BySplit
from headwater.epoch.outbox import Outbox
from headwater.epoch.reports import TaskReport, staged_files, tell_sources
from headwater.epoch.steps import EpochStep, OnStep
from headwater.errors import HeadwaterError, PublishError
from headwater.plan.plan import JobPlan
from headwater.savepoints.origin import Origin
from headwater.savepoints.remembered import begin_sources
from headwater.task.closing import close_all

MAX_UNPUBLISHED = 8
"""Epochs that may wait for a slow sink before the pipeline waits too."""


@dataclass(frozen=True)
class Claim:
    """What an engine knows of a job when it has made it its own."""

    job_id: str
    origin: Origin | None
    """The savepoint that the job went on from when it was new."""
    resumed: bool
    """Whether it has been run before."""
    outbox: Path

    @property
    def first_epoch(self) -> int:
        """The number of the job's first epoch; those before it are of the job that it goes on from."""
        return 0 if self.origin is None else self.origin.epoch + 1


@dataclass(frozen=True)
class Computed:
    """What came of an epoch: the reports of its tasks, and what follows from its offset."""

    reports: Sequence[TaskReport]
    positions: BySplit
    """How far sources were read."""
    now_ms: int
    end: bool
    """Whether the input has ended with it."""


class EpochEngine(Protocol):
    """What the protocol asks of an engine, and tells it."""

    def claim(self, origin: Origin | None) -> Claim:
        """Make the job this engine's own: nobody else runs it from here on."""

    def is_committed(self, epoch: int) -> bool:
        """Whether an epoch that has a manifest counts."""

    def recovered(self, epoch: int | None) -> None:
        """Told when the job is about to go on after this epoch, which every sink has; None before its first one."""

    def admit(self, epoch: int, what: Computed) -> None:
        """Told what came of an epoch before anything else is done with it; raises what keeps it from being committed."""

    def computed(self, epoch: int, what: Computed) -> None:
        """Told when nothing is left to do for an epoch before its commit."""

    def handed_over(self, epoch: int) -> None:
        """Told when every sink has an epoch."""


class EpochProtocol:
    """The steps of a job and of its epochs, each in one place; the numbers are those of `EpochStep`."""

    _claim: Claim
    """Since `begin`."""
    _outbox: Outbox
    """Of the attempt that goes on, since `recover`."""

    def __init__(self, plan: JobPlan, engine: EpochEngine, on_step: OnStep) -> None:
        self._plan, self._engine, self._on_step = plan, engine, on_step
        self._sinks = plan.sinks_by_uid()
        self._room = threading.Condition()
        self._is_given_up = False

    def begin(self, sources: Path, origin: Origin | None, *, is_new: bool) -> None:
        """Let sources check themselves, each in its folder below `sources`, and then claim the job.

        Durable afterwards: what sources remember, and whose the job is. Input that is refused leaves no claim.
        """
        begin_sources(self._plan, sources, origin, is_new=is_new)
        self._claim = self._engine.claim(origin)

    def recover(self, *, again: bool) -> None:
        """Go back to what is committed: in a new process, or `again` in one in which an attempt has failed.

        Every sink is taken over before any is opened, and once in a process: an output that another job has taken since
        is that job's. A manifest with a commit is published, one without is discarded, and then staged files that no
        manifest names are removed. Durable afterwards: all rows of committed epochs, and nothing of others.
        """
        claim, origin = self._claim, self._claim.origin
        if origin is not None and not again:
            for uid, sink in self._sinks.items():
                sink.take_over(uid, claim.job_id, origin.job_id, origin.epoch)
        resumed = again or claim.resumed or origin is not None
        for node in self._plan.sinks():
            node.sink.open(self._plan.graph.uid(node), claim.job_id, node.schema, resumed=resumed)
        self._is_given_up = False
        self._outbox = Outbox(claim.outbox, self._sinks, claim.first_epoch)
        for epoch in self._outbox.pending():
            if self._engine.is_committed(epoch):
                self._hand_over(epoch)
                self._clean(epoch)
            else:
                self._outbox.discard(epoch)
        self._outbox.remove_orphans()
        self._engine.recovered(self.published if self.published >= claim.first_epoch else None)

    def prepare(self, epoch: int, compute: Callable[[], Computed]) -> Computed:
        """Steps 1 to 3: take an epoch as far as to its commit. `compute` runs it, and its tasks stage their rows.

        A job that is at-least-once takes steps 5 and 6 here. An epoch that sinks have already is given to none again.
        """
        self._plan_epoch(epoch)
        what = self._stage(epoch, compute)
        self._name(epoch, what)
        if self._plan.publishes_early and epoch > self.published:
            self._hand_over(epoch)
        self._engine.computed(epoch, what)
        return what

    def publish_committed(self) -> None:
        """Steps 4 to 7, for every epoch that is prepared and committed by now, in order."""
        for epoch in self._outbox.pending():
            if not self._see_commit(epoch):
                return
            if not self._plan.publishes_early:
                self._hand_over(epoch)
            self._clean(epoch)

    def _plan_epoch(self, epoch: int) -> None:
        """Step 1: wait for room. The engine has logged the epoch's offset before; nothing more is durable."""
        with self._room:
            self._room.wait_for(lambda: epoch - self.published <= MAX_UNPUBLISHED or self._is_given_up)
        self._on_step(EpochStep.PLANNED, epoch)

    def _stage(self, epoch: int, compute: Callable[[], Computed]) -> Computed:
        """Step 2: compute. Durable: the staged files and the new state, neither of them valid yet."""
        what = compute()
        self._engine.admit(epoch, what)
        self._on_step(EpochStep.STAGED, epoch)
        return what

    def _name(self, epoch: int, what: Computed) -> None:
        """Step 3: write the manifest. Durable: which files belong to the epoch, should it be committed."""
        files = staged_files(what.reports)
        self._outbox.write_manifest(
            Manifest.of(epoch, files, end=what.end, positions=what.positions, now_ms=what.now_ms)
        )
        self._on_step(EpochStep.MANIFEST, epoch)

    def _see_commit(self, epoch: int) -> bool:
        """Step 4: ask the engine. Durable: that the epoch counts, and will not run again."""
        if not self._engine.is_committed(epoch):
            return False
        self._on_step(EpochStep.COMMITTED, epoch)
        return True

    def _hand_over(self, epoch: int) -> None:
        """Steps 5, for each sink, and 6: publish. Durable: the rows, where the sink puts them; perhaps they were before."""
        manifest = self._outbox.manifest(epoch)
        for uid, sink in self._sinks.items():
            with _named(uid, epoch):
                sink.at_epoch(manifest.now_ms, ended=manifest.end)
                sink.publish(epoch, [file for file in manifest.files if file.sink == uid])
            self._on_step(EpochStep.PUBLISHING, epoch)
        self._on_step(EpochStep.PUBLISHED, epoch)
        self._engine.handed_over(epoch)

    def _clean(self, epoch: int) -> None:
        """Step 7: record the epoch as published and tell the sources. Durable: that it need not be looked at again."""
        self._outbox.close(epoch)
        self._on_step(EpochStep.CLEANED, epoch)
        tell_sources(self._plan, self.progress.positions)
        with self._room:
            self._room.notify_all()

    def give_up(self) -> None:
        """Let an epoch that waits for room have it: nothing more is published before the next `recover`."""
        with self._room:
            self._is_given_up = True
            self._room.notify_all()

    def flush(self) -> None:
        """Let sinks show what they hold back; a job that has failed may go on with it."""
        for uid, sink in self._sinks.items():
            with _named(uid, self.published):
                sink.flush()

    def close(self) -> None:
        """Let go of every sink, however the job ended."""
        close_all(self._sinks.values())

    @property
    def first_epoch(self) -> int:
        """The number of the job's first epoch."""
        return self._claim.first_epoch

    @property
    def published(self) -> int:
        """The newest epoch that is committed and that every sink has."""
        return self._outbox.published

    @property
    def progress(self) -> Published:
        """What is recorded of that epoch: its number, its positions, and whether the input has ended."""
        return self._outbox.progress


@contextmanager
def _named(uid: str, epoch: int) -> Iterator[None]:
    """Name the sink and the epoch in an error that knows neither."""
    try:
        yield
    except HeadwaterError:
        raise
    except Exception as error:
        raise PublishError.failed(uid, epoch, f"{type(error).__name__}: {error}") from error
