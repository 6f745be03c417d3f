"""Where a job started from: the savepoint, what was renamed since, and what each subtask begins with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.plan.levels import JobPlan
from headwater.runtime.host import LevelHost
from headwater.runtime.saved.dealing import StateOf, deal
from headwater.runtime.saved.errors import SavepointError
from headwater.runtime.saved.files import SavedFile, Savepoint, as_puts
from headwater.runtime.saved.fitting import Program, evolved
from headwater.runtime.saved.renaming import Renaming
from headwater.state.keys import subtasks_of


@dataclass(frozen=True)
class Origin:
    """A savepoint that a job goes on from. It must stay until the job has committed its first epoch."""

    path: str
    digest: str
    """Of the savepoint's description: another one at the same path is not taken for it."""
    job_id: str
    epoch: int
    """The savepoint's epoch; the job goes on with the next one."""
    renaming: Renaming

    @classmethod
    def of(cls, savepoint: Savepoint, renaming: Renaming) -> Origin:
        known = savepoint.description
        return cls(str(savepoint.path), savepoint.digest, known.job_id, known.epoch, renaming)

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Origin:
        names = tuple((old, new) for old, new in content["renaming"]["names"])
        return cls(**{**content, "renaming": Renaming(names)})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def is_same(self, other: Origin) -> bool:
        """Whether both begin with the same, wherever it is kept."""
        return (self.digest, self.renaming) == (other.digest, other.renaming)

    def savepoint(self) -> Savepoint:
        """The savepoint, opened once in this process; refuses another one in its place."""
        return _opened(self.path, self.digest)

    def offset(self, first: dict[str, Any]) -> dict[str, Any]:
        """A job's first offset, with positions as they were in the savepoint where it has them; no split is idle yet."""
        saved = self.savepoint().offset
        found = {**first, "epoch": self.epoch + 1, "started_ms": saved["started_ms"]}
        found["now_ms"] = max(first["now_ms"], saved["now_ms"])
        for fact in ("positions", "marks"):
            before = {self.renaming.step(uid): splits for uid, splits in saved.get(fact, {}).items()}
            found[fact] = {uid: {**first[fact].get(uid, {}), **before.get(uid, {})} for uid in first["positions"]}
        found["active_ms"] = {
            uid: dict.fromkeys(found["positions"][uid], found["now_ms"]) for uid in first["active_ms"]
        }
        return found

    def record(self, plan: JobPlan, level: int, subtask: int) -> bytes:
        """What a subtask of the plan begins with. Files whose key groups are all of other subtasks are not read."""
        savepoint, program = self.savepoint(), Program(plan)
        host = program.hosts[level]
        tables: dict[StateOf, list[pa.Table]] = {}
        metas: dict[str, Sequence[dict[str, Any]]] = {}
        for uid, step in savepoint.description.steps.items():
            new_uid = self.renaming.step(uid)
            if new_uid not in host.operators():
                continue
            metas[new_uid] = step.metas
            for name, files in step.states.items():
                new = (new_uid, self.renaming.state(uid, name))
                if new in program.tables:
                    wanted = self._needed(savepoint, files, plan, subtask)
                    read = [evolved(self.renaming, (uid, name), new, savepoint.read(file), program) for file in wanted]
                    schema = program.tables[new].dump().schema
                    tables[new] = [as_puts(table, schema) for table in read]
        return deal(host, plan, subtask, tables, metas)

    @staticmethod
    def _needed(savepoint: Savepoint, files: Sequence[SavedFile], plan: JobPlan, subtask: int) -> list[SavedFile]:
        if savepoint.description.key_groups != plan.groups:
            return list(files)
        return [file for file in files if file.groups is None or _meets(file.groups, plan, subtask)]


def begin(host: LevelHost, plan: JobPlan, place: tuple[int, int], origin: Origin | None) -> None:
    """Give a host without committed state what it begins with."""
    if origin is not None:
        host.apply(origin.record(plan, *place))


def _meets(groups: tuple[int, int], plan: JobPlan, subtask: int) -> bool:
    first, last = subtasks_of(np.array(groups), plan.groups, plan.parallelism).tolist()
    return bool(first <= subtask <= last)


@lru_cache(maxsize=4)
def _opened(path: str, digest: str) -> Savepoint:
    savepoint = Savepoint.open(Path(path))
    if savepoint.digest != digest:
        raise SavepointError.replaced(savepoint.path)
    return savepoint
