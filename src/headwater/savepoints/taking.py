"""Taking a savepoint: each subtask's state is written where it is, then the driver completes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.epoch.offset import Offset
from headwater.graph.describe import describe
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import (
    Description,
    SavedFile,
    SavedStep,
    Savepoint,
    complete,
    file_from_json,
    write_table,
    writing,
)
from headwater.savepoints.remembered import save_remembered
from headwater.savepoints.steps import OnSavepointStep, SavepointStep, ignore_savepoint_steps
from headwater.task.host import LevelHost
from headwater.task.inflight import InFlight


@dataclass(frozen=True)
class Part:
    """What one subtask of one level wrote."""

    subtask: int
    metas: dict[str, dict[str, Any]]
    files: list[tuple[str, str, SavedFile]]

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "files": [(uid, state, asdict(file)) for uid, state, file in self.files]}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Part:
        files = [(uid, state, file_from_json(file)) for uid, state, file in content["files"]]
        return cls(content["subtask"], content["metas"], files)


def write_part(host: LevelHost, plan: JobPlan, subtask: int, folder: Path) -> Part:
    """Write the state of a host, which is not one that an epoch runs on. The first subtask shows what else there could be."""
    files = []
    for (uid, state), table in host.tables().items():
        if isinstance(table, InFlight):
            table.check_nothing_waits()
            continue
        if len(dump := table.dump()) or subtask == 0:
            file = write_table(folder, (uid, state, subtask), dump, table.spread, plan.groups)
            files.append((uid, state, file))
    metas = {uid: operator.meta() for uid, operator in host.operators().items()}
    return Part(subtask, metas, files)


@dataclass(frozen=True)
class Epoch:
    """What is saved: a committed epoch of a job."""

    plan: JobPlan
    job_id: str
    epoch: int
    offset: Offset
    sources: Path
    """Where the job's sources keep what they must remember."""


def take(
    path: Path,
    what: Epoch,
    write_parts: Callable[[Path], Iterable[Part]],
    on_step: OnSavepointStep = ignore_savepoint_steps,
) -> Savepoint:
    """Write a savepoint into a new folder."""
    plan = what.plan
    with writing(path) as folder:
        on_step(SavepointStep.BEGUN, what.epoch)
        parts = []
        for part in write_parts(folder):
            parts.append(part)
            on_step(SavepointStep.WRITING, what.epoch)
        on_step(SavepointStep.WRITTEN, what.epoch)
        description = Description(
            plan.graph.name,
            what.job_id,
            what.epoch,
            plan.parallelism,
            plan.groups,
            what.offset,
            describe(plan.graph),
            _steps(folder, plan, parts),
            save_remembered(plan, what.sources, what.offset.positions, folder),
        )
        savepoint = complete(folder, description)
    on_step(SavepointStep.COMPLETE, what.epoch)
    return savepoint


def _steps(folder: Path, plan: JobPlan, parts: list[Part]) -> dict[str, SavedStep]:
    """What all subtasks wrote, by step; refuses when one is missing."""
    steps = {uid: SavedStep(words, [], {}) for uid, words in plan.kept_by_step().items()}
    for part in sorted(parts, key=lambda part: part.subtask):
        for uid, meta in part.metas.items():
            steps[uid].metas.append(meta)
        for uid, state, file in part.files:
            steps[uid].states.setdefault(state, []).append(file)
    for uid, step in steps.items():
        if len(step.metas) != plan.parallelism:
            found = f"step {uid!r} has the state of {len(step.metas)} of {plan.parallelism} subtasks"
            raise SavepointError.failed(folder, found)
    return steps
