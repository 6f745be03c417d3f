"""The totals job with savepoints, for tests that kill it: while one is taken, and while it goes on from one.

Run as a program: saving_job.py FOLDER LOG OPTIONS, where OPTIONS is JSON, see `Options`.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import totals_job
from crash import Crash, Crashed, kill

import headwater as hw
from headwater.job.engine import Job, Settings
from headwater.savepoints.steps import SavepointStep


@dataclass(frozen=True)
class Options:
    """What to do, and where to die."""

    engine: str = "spark"
    parallelism: int = 2
    job_dir: str = "job"
    from_: str | None = None
    kill_opening: int | None = None
    """Which sink is about to be opened; nothing of Spark is there yet."""
    taken: str | None = None
    """A path at which a savepoint must be refused."""
    save: str | None = None
    at: int = 0
    """The epoch that is saved; the next one is not computed before the savepoint has begun."""
    kill_saving: tuple[str, int] | None = None
    """A step of the savepoint, and how often it comes before."""
    crash_saved: bool = False
    """Whether the job crashes when the savepoint is complete."""
    holds: bool = False
    """Whether no further epoch is computed before the savepoint is complete."""


def run(folder: Path, log: Path, options: Options, crash: Crash | None = None, **settings: Any) -> None:
    """The job, to its end or to its death."""
    env = totals_job.build(folder, log=log, engine=options.engine, parallelism=options.parallelism, **settings)
    plan = env.plan()
    may_go_on = threading.Event()
    seen: list[str] = []
    is_over = threading.Event()

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if crash is not None:
            crash(step, epoch)
        if options.save is not None and (step, epoch) == (hw.EpochStep.PLANNED, options.at + 1):
            may_go_on.wait()
        if is_over.is_set():
            raise Crashed("when the savepoint was complete")

    def on_savepoint_step(step: SavepointStep, epoch: int) -> None:
        assert epoch == options.at, "no later epoch was there to be saved"
        if not options.holds:
            may_go_on.set()
        if options.kill_saving is not None and (step.name, seen.count(step.name)) == tuple(options.kill_saving):
            kill()
        seen.append(step.name)

    if options.kill_opening is not None:
        plan.sinks()[options.kill_opening].sink.open = kill  # type: ignore[assignment, method-assign]
    job = env._engine().start(
        plan,
        Settings(
            job_dir=folder / options.job_dir,
            checkpoint_interval_ms=1000,
            checkpoints_retained=100,
            max_rows_per_epoch=totals_job.ROWS_PER_EPOCH,
            bounded=True,
            on_step=on_step,
            on_savepoint_step=on_savepoint_step,
            origin=env._origin(options.from_, None, allow_dropped_state=False),
            spark=settings.get("spark"),
        ),
    )
    if options.save is not None:
        try:
            save(job, options)
        finally:
            if options.crash_saved:
                is_over.set()
            may_go_on.set()
    job.wait()


def save(job: Job, options: Options) -> None:
    assert options.save is not None
    while job.status().published < options.at:
        assert not job.wait(0.02)
    if options.taken is not None:
        with pytest.raises(hw.SavepointError, match="is there already and not empty"):
            job.savepoint(options.taken)
    job.savepoint(options.save)


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path(sys.argv[2]), Options(**json.loads(sys.argv[3])))
