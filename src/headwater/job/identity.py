"""Which job a folder is of: its name, its id, what it keeps, and what it started from."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from headwater.graph.nodes.core import TTLS
from headwater.job import layout
from headwater.plan.plan import JobPlan
from headwater.savepoints.origin import Origin
from headwater.shapes import fits
from headwater.state.keys import are_sizes
from headwater.versioned import Versioned


@dataclass(frozen=True)
class JobIdentity(Versioned):
    """What `job.json` says. Its version is that of the folder."""

    FORMAT: ClassVar[int] = layout.FORMAT

    name: str
    job_id: str
    shape: dict[str, Any]
    """What the job keeps, and on how many subtasks."""
    origin: Origin | None = None
    version: int = layout.FORMAT

    @property
    def levels(self) -> int:
        """How many levels the job has."""
        return max((int(step["level"]) for step in self.shape["steps"].values()), default=0)

    @property
    def parallelism(self) -> int:
        """The number of subtasks of each level."""
        return int(self.shape["parallelism"])

    @property
    def key_groups(self) -> int:
        """How many groups keys are dealt into."""
        return int(self.shape["key groups"])

    @property
    def first_epoch(self) -> int:
        """The number of the job's first epoch: it goes on with those of the job that it started from."""
        return 0 if self.origin is None else self.origin.epoch + 1

    def _content(self) -> dict[str, Any]:
        content = {"job": self.name, "id": self.job_id, "shape": self.shape}
        return content if self.origin is None else {**content, "origin": self.origin.to_json()}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:  # noqa: ARG003  it holds no record of another version
        origin = Origin.from_json(content["origin"]) if "origin" in content else None
        found = cls(content["job"], content["id"], content["shape"], origin, content.get("format", 1))
        steps, sources = found.shape["steps"], found.shape["sources"]
        if not fits(steps, dict[str, dict[str, Any]]) or not fits(sources, list[str]):
            raise TypeError("its steps and sources are not those of a job")
        if not are_sizes(found.shape["parallelism"], found.shape["key groups"]) or found.levels > len(steps):
            raise ValueError(
                f"no job has {found.parallelism} subtasks, {found.key_groups} key groups, {found.levels} levels"
            )
        return found


def shape_of(plan: JobPlan) -> dict[str, Any]:
    """What must stay the same for stored state to fit: parallelism, key groups, levels, keys and states of steps."""
    entries: dict[str, Any] = {}
    for node_id, level in plan.level_of_entry.items():
        node = plan.graph.node(node_id)
        entry: dict[str, Any] = {"level": level}
        if node.is_stateful:
            entry.update({fact: words for fact, words in node.kept().items() if fact != TTLS})
        setters = sorted({by for _, by in plan.feeders(node) if by is not None})
        if setters:
            entry["event time by"] = setters
        entries[plan.graph.uid(node)] = entry
    sources = [plan.graph.uid(node) for node in plan.sources()]
    return {"parallelism": plan.parallelism, "key groups": plan.groups, "steps": entries, "sources": sources}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What is not the same in two shapes, in words."""
    new = json.loads(json.dumps(new))  # as it is read back
    found = [
        f"{name} was {old[name]}, is {new[name]}"
        for name in ("parallelism", "key groups", "sources")
        if old[name] != new[name]
    ]
    return found + [f"step {uid!r} {how}" for uid, how in _of_steps(old["steps"], new["steps"]).items()]


def differences_by_step(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    """By uid, what is not the same of steps and sources."""
    new = json.loads(json.dumps(new))
    sources = _of_steps(dict.fromkeys(old["sources"]), dict.fromkeys(new["sources"]))
    return {**sources, **_of_steps(old["steps"], new["steps"])}


def _of_steps(old: dict[str, Any], new: dict[str, Any]) -> dict[str, str]:
    found = {uid: "is gone" for uid in old if uid not in new}
    found |= {uid: "is new" for uid in new if uid not in old}
    changed = [uid for uid in old if uid in new and old[uid] != new[uid]]
    return found | {uid: f"was {json.dumps(old[uid])}, is {json.dumps(new[uid])}" for uid in changed}
