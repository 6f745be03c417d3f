"""What each step of a job keeps, per what, until when; how much that is, how it grows, and how it can be bounded.

`env.explain_state()` and EXPLAIN STATE tell it of a plan, `job.explain_state()` and a sample of a job that has run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from headwater.budgets import Budget
from headwater.graph.holdings import Holding, held_in, holdings
from headwater.graph.nodes import Node
from headwater.job.growth.course import StateCourse, StepCourse
from headwater.job.growth.forecast import Growth, Lasting, growth_of
from headwater.job.growth.text import explanation_text
from headwater.job.status import JobStatus, StepStatus
from headwater.plan.plan import JobPlan
from headwater.words import TimeDomain


@dataclass(frozen=True)
class StateSize:
    """A state of a step, on all subtasks: how much it is, and how it grows."""

    name: str
    entries: int
    """The keys that have it, or the rows of steps that keep rows."""
    size_bytes: int
    """About what its entries take as columns, not compressed."""
    growth: Growth | None = None
    """None where too little was seen of it."""

    @property
    def entry_bytes(self) -> float:
        """What an entry takes, with all that it has."""
        return self.size_bytes / self.entries if self.entries else 0.0


@dataclass(frozen=True)
class StepState:
    """A step that keeps something."""

    uid: str
    operation: str
    place: str
    """Where its working state is: in "memory" or on "disk"."""
    keeps: tuple[Holding, ...]
    sizes: tuple[StateSize, ...] = ()
    """How much it is, or was before its input ended, where it has run; what a step has for itself begins with @."""
    clock: TimeDomain | None = None
    """The time that growth is told by."""
    expired: int = 0
    """How many entries a ttl has removed in this run."""
    budget: Budget | None = None

    @property
    def size_bytes(self) -> int:
        """About what all its state takes."""
        return sum(one.size_bytes for one in self.sizes)

    @property
    def bytes_per_hour(self) -> float | None:
        """By how much it grows in an hour; None where too little was seen."""
        known = [one.growth.bytes_per_hour for one in self.sizes if one.growth is not None]
        return sum(known) if known else None

    @property
    def grows(self) -> Literal["for ever", "so far"] | None:
        """Whether nothing ever takes its state away, or nothing has done so yet and nobody knows whether something will."""
        if not all(held.is_bounded for held in self.keeps):
            return "for ever"
        return "so far" if any(one.growth and one.growth.has_only_grown for one in self.sizes) else None

    @property
    def is_left_to_function(self) -> bool:
        """Whether there is something that a function has to remove."""
        return any(held.is_left_to_function for held in self.keeps)

    @property
    def ways_out(self) -> tuple[str, ...]:
        """How it can be bounded, where it grows."""
        grow = [held for held in self.keeps if not held.is_bounded]
        for one in self.sizes:
            if one.growth and one.growth.has_only_grown:
                grow += held_in(self.keeps, one.name)
        return tuple(dict.fromkeys(way for held in grow for way in held.ways_out))

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        sizes = [{**asdict(one), "entry_bytes": round(one.entry_bytes, 1)} for one in self.sizes]
        own = {"size_bytes": self.size_bytes, "grows": self.grows, "ways_out": list(self.ways_out)}
        return {**asdict(self), "keeps": [asdict(held) for held in self.keeps], "sizes": sizes, **own}


@dataclass(frozen=True)
class StateExplanation:
    """The steps of a job that keep something, by uid; printed, as a text."""

    job: str
    steps: Mapping[str, StepState]
    measured: str | None = None
    """What it was seen in: a run, or a sample; None where nothing was run."""

    def __getitem__(self, uid: str) -> StepState:
        return self.steps[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self.steps)

    def __str__(self) -> str:
        return explanation_text(self)

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        steps = {uid: step.to_dict() for uid, step in self.steps.items()}
        return {"job": self.job, "measured": self.measured, "steps": steps}


def explained_state(plan: JobPlan) -> StateExplanation:
    """What is known before anything has run."""
    steps = {plan.graph.uid(node): _planned(plan, node) for node in _keeping(plan)}
    return StateExplanation(plan.graph.name, steps)


def measured_state(plan: JobPlan, course: StateCourse, status: JobStatus, measured: str) -> StateExplanation:
    """What is known after some epochs."""
    steps = {}
    for node in _keeping(plan):
        uid = plan.graph.uid(node)
        steps[uid] = _measured(_planned(plan, node), course.of(uid), status.steps.get(uid, StepStatus()))
    return StateExplanation(plan.graph.name, steps, measured)


def _keeping(plan: JobPlan) -> Iterator[Node]:
    return (node for node in plan.graph if holdings(node))


def _planned(plan: JobPlan, node: Node) -> StepState:
    uid = plan.graph.uid(node)
    return StepState(uid, node.operation, plan.of(node).state or "", holdings(node), budget=plan.budgets.get(uid))


def _measured(planned: StepState, course: StepCourse, status: StepStatus) -> StepState:
    newest = course.points[-1].states if course.points else {}
    sizes = tuple(
        StateSize(name, size.entries, size.size_bytes, growth_of(course, name, _lasting(planned.keeps, name)))
        for name, size in newest.items()
    )
    clock = course.clock if any(one.growth for one in sizes) else None
    expired = status.counters.get("state_expired", 0)
    return StepState(
        planned.uid, planned.operation, planned.place, planned.keeps, sizes, clock, expired, planned.budget
    )


def _lasting(keeps: tuple[Holding, ...], state: str) -> Lasting | None:
    """How long entries of a state last: as the one says that declares it, or else as long as the longest of the step's own."""
    held = held_in(keeps, state)
    known = [Lasting(one.lasts_ms, one.clock, one.is_refreshed) for one in held if one.lasts_ms is not None]
    return max(known, key=lambda one: one.ms) if len(known) == len(held) and known else None


def growth_by_step(plan: JobPlan, course: StateCourse, status: JobStatus) -> dict[str, dict[str, int]]:
    """For the status: how the state of each step grows, and the forecasts; of those of which enough was seen."""
    found = {}
    for uid, step in measured_state(plan, course, status, "").steps.items():
        known = [one.growth for one in step.sizes if one.growth is not None]
        if known:
            found[uid] = {
                "bytes_per_hour": round(sum(one.bytes_per_hour for one in known)),
                "day_bytes": sum(one.day_bytes for one in known),
                "week_bytes": sum(one.week_bytes for one in known),
            }
    return found
