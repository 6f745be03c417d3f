"""Upgrades tried out: what a program would make of a savepoint or a checkpoint, without starting anything."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from headwater.job.checkpoints.listing import Checkpoint
from headwater.job.identity import differences_by_step, shape_of
from headwater.job.reading import JobReader
from headwater.plan.plan import JobPlan, plan_job
from headwater.savepoints.files import Savepoint
from headwater.savepoints.fitting import CHANNELS, POSITION, Fate, Fit, Program, Upgrade, fit
from headwater.savepoints.renaming import Renaming
from headwater.streams.environment import Environment


def check(
    path: str | os.PathLike[str] | Checkpoint, env: Environment, renamed: Mapping[str, str] | None = None
) -> Upgrade:
    """What becomes of each state of the savepoint when `env.run(from_=path, renamed=renamed)` goes on from it.

    It takes a checkpoint too, as `from_` does: the program must then be the one that wrote it, at any parallelism. It reads
    descriptions and the heads of files: neither sources and sinks nor functions are opened.
    """
    if isinstance(path, Checkpoint):
        return _of_checkpoint(path, env.plan())
    return fit(Savepoint.open(Path(path)), Program(env.plan()), Renaming.of(renamed))


def _of_checkpoint(checkpoint: Checkpoint, plan: JobPlan) -> Upgrade:
    note = JobReader(checkpoint.job_dir).identity
    program = Program(plan_job(plan.graph, note.parallelism, note.key_groups, plan.state_backend))
    differ = differences_by_step(note.shape, shape_of(program.plan))
    fits = tuple(_fits(program, {*note.shape["steps"], *note.shape["sources"]}, differ))
    needs = (
        "a checkpoint needs the program that wrote it, at any parallelism: take a savepoint to go on in another shape"
    )
    ended = "the input had ended: event time is at its end, and every row to come with a time is late"
    return Upgrade(fits, (needs,) * bool(differ) + (ended,) * checkpoint.ended)


def _fits(program: Program, known: set[str], differ: Mapping[str, str]) -> Iterator[Fit]:
    for uid in program.sources:
        if uid not in differ:
            yield Fit(uid, POSITION, Fate.KEPT)
    for uid, how in differ.items():
        yield Fit(uid, "*", Fate.IMPOSSIBLE, how)
    for uid, name in program.tables:
        if uid in known and uid not in differ and not name.startswith(CHANNELS):
            yield Fit(uid, name, Fate.KEPT)
