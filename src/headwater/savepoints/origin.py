"""Where a job started from: the savepoint, what was renamed since, and what each subtask begins with."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.connectors.contract import FOR_EVER_MS, NO_SPLIT
from headwater.epoch.offset import BySplit, Offset
from headwater.errors import HeadwaterError
from headwater.plan.plan import JobPlan
from headwater.savepoints.dealing import StateOf, deal
from headwater.savepoints.errors import Impossible, SavepointError
from headwater.savepoints.facts import facts_of
from headwater.savepoints.files import RememberedFile, SavedFile, Savepoint, as_puts
from headwater.savepoints.fitting import difference, evolve
from headwater.savepoints.renaming import Renaming
from headwater.state.keys import subtasks_of
from headwater.state.table import StateTable
from headwater.task.host import LevelHost


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

    def offset(self, first: Offset) -> Offset:
        """A job's first offset, with positions as they were in the savepoint where it has them; no split is idle yet.

        Splits that came since are read from their beginning, as they would have been, also when there were none.
        """
        saved = self.savepoint().offset
        now_ms = max(first.now_ms, saved.now_ms)
        positions = dict(first.positions)
        for uid, read in self._by_source(first.positions, saved.positions).items():
            positions[uid] = {**dict.fromkeys(first.positions[uid], 0), **read} if read else {}
        return replace(
            first,
            epoch=self.epoch + 1,
            started_ms=first.started_ms if saved.started_ms is None else saved.started_ms,
            now_ms=now_ms,
            positions=positions,
            marks=self._by_source(first.positions, saved.marks),
            active_ms={uid: dict.fromkeys(positions[uid] or [NO_SPLIT], now_ms) for uid in first.active_ms},
        )

    def _by_source(self, uids: Collection[str], saved: BySplit) -> BySplit:
        """What the savepoint says of the splits of sources that are still there."""
        by_uid = {self.renaming.step(uid): splits for uid, splits in saved.items()}
        return {uid: splits for uid, splits in by_uid.items() if uid in uids}

    def check_input(self, plan: JobPlan) -> None:
        """Refuse a source that ends before the position it was read up to: it is another one."""
        sources = {plan.graph.uid(node): node.source for node in plan.sources()}
        for uid, read in self._by_source(sources, self.savepoint().offset.positions).items():
            ends = sources[uid].latest(sources[uid].earliest(), FOR_EVER_MS)
            for split, position in read.items():
                if position > ends.get(split, position):
                    raise SavepointError.beyond_end(Path(self.path), f"{uid}/{split}", position, ends[split])

    def remembered(self, uid: str) -> list[RememberedFile]:
        """What the savepoint has of what a source remembers."""
        by_uid = self.savepoint().description.remembered.items()
        return next((files for old, files in by_uid if self.renaming.step(old) == uid), [])

    def record(self, host: LevelHost, plan: JobPlan, subtask: int) -> bytes:
        """What a host, which is empty, begins with. Files whose key groups are all of other subtasks are not read."""
        savepoint, kept = self.savepoint(), plan.kept_by_step()
        places, operators = host.tables(), host.operators()
        tables: dict[StateOf, list[pa.Table]] = {}
        metas: dict[str, Sequence[dict[str, Any]]] = {}
        for old_uid, step in savepoint.description.steps.items():
            uid = self.renaming.step(old_uid)
            states = [name for at, name in places if at == uid]
            if uid not in operators or difference(step, kept[uid], states) is not None:
                continue
            metas[uid] = facts_of(step)
            for old_name, files in step.states.items():
                new = (uid, self.renaming.state(old_uid, old_name))
                if new in places:
                    fields = self.renaming.fields(old_uid, old_name, step.states)
                    needed = self._needed(savepoint, files, plan, subtask)
                    tables[new] = [self._read(savepoint, file, fields, places[new]) for file in needed]
        return deal(host, plan, subtask, tables, metas)

    def _read(self, savepoint: Savepoint, file: SavedFile, fields: dict[str, str], into: StateTable) -> pa.Table:
        table, _ = evolve(fields, file, savepoint.read(file), into, self.renaming)
        return as_puts(table, into.dump().schema)

    @staticmethod
    def _needed(savepoint: Savepoint, files: Sequence[SavedFile], plan: JobPlan, subtask: int) -> list[SavedFile]:
        filled = [file for file in files if file.rows]
        if savepoint.description.key_groups != plan.groups:
            return filled
        return [file for file in filled if file.groups is None or _meets(file.groups, plan, subtask)]


def begin(host: LevelHost, plan: JobPlan, subtask: int, origin: Origin | None) -> None:
    """Give a host without committed state what it begins with."""
    if origin is None:
        return
    try:
        host.apply(origin.record(host, plan, subtask))
    except HeadwaterError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
        pa.ArrowException,
        Impossible,
    ) as error:
        # Checksums fit, so this is what was written: not by us.
        problem = f"its state is not what the step keeps: {type(error).__name__}: {error}"
        raise SavepointError.corrupt(Path(origin.path), problem) from error


def _meets(groups: tuple[int, int], plan: JobPlan, subtask: int) -> bool:
    first, last = subtasks_of(np.array(groups), plan.groups, plan.parallelism).tolist()
    return bool(first <= subtask <= last)


@lru_cache(maxsize=4)
def _opened(path: str, digest: str) -> Savepoint:
    savepoint = Savepoint.open(Path(path))
    if savepoint.digest != digest:
        raise SavepointError.replaced(savepoint.path)
    return savepoint
