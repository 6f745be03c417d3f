"""What a run is, for who looks at it from outside: its steps and levels, its guarantees, its settings, in words.

The driver writes it once, when it starts. No program is needed to read it, and nothing depends on it.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from headwater.durations import duration_text
from headwater.functions import EVENT
from headwater.graph.guarantees import guarantees
from headwater.graph.nodes import Node, SourceNode
from headwater.job.engine import Settings
from headwater.plan.plan import JobPlan
from headwater.sizes import size_text
from headwater.versioned import Versioned
from headwater.watermarks import Watermarks
from headwater.words import EngineName


@dataclass(frozen=True)
class OutlineInput:
    """Where rows of a step come from."""

    step: str
    tag: str | None
    """The side output that they are of."""
    exchange: str | None
    """How they move to other subtasks; None where they stay."""


@dataclass(frozen=True)
class OutlineWindow:
    """The windows of a step."""

    text: str
    in_event_time: bool
    every_ms: int | None
    """The distance between the ends of two windows, where it is always the same."""
    size_ms: int | None
    offset_ms: int
    lateness_ms: int


@dataclass(frozen=True)
class OutlineWatermarks:
    """How event time comes out of a source."""

    text: str
    column: str | None
    delay_ms: int
    idle_ms: int | None
    group: str | None
    max_drift_ms: int


@dataclass(frozen=True)
class OutlineStep:
    """A step, as it was planned."""

    uid: str
    operation: str
    level: int
    """Sources are on level 0; each time that rows move, they go at least one further."""
    inputs: tuple[OutlineInput, ...]
    schema: str
    is_source: bool
    is_sink: bool
    is_stateful: bool
    sets_time: bool
    detail: str
    """The system that a source or sink speaks to, without secrets; else how the step is computed."""
    times_from: tuple[str, ...]
    """The sources, and steps that take event time anew, whose watermarks its own follows."""
    late_to: str | None = None
    """The side output that late rows go to; None where they are only counted."""
    window: OutlineWindow | None = None
    watermarks: OutlineWatermarks | None = None


@dataclass(frozen=True)
class OutlinePath:
    """How often rows of a source take effect in a sink, and why."""

    source: str
    sink: str
    guarantee: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class JobOutline(Versioned):
    """A run, as its driver started it."""

    engine: str
    version: str
    """Of Headwater."""
    started_ms: int
    parallelism: int
    levels: int
    settings: Mapping[str, str]
    steps: tuple[OutlineStep, ...]
    paths: tuple[OutlinePath, ...]

    def step(self, uid: str) -> OutlineStep | None:
        """A step by its uid."""
        return next((step for step in self.steps if step.uid == uid), None)

    def _content(self) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return content

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        steps = tuple(_step_from(step) for step in content["steps"])
        paths = tuple(OutlinePath(**{**path, "reasons": tuple(path["reasons"])}) for path in content["paths"])
        return super()._of({**content, "steps": steps, "paths": paths}, where)


def _step_from(content: dict[str, Any]) -> OutlineStep:
    window, marks = content.get("window"), content.get("watermarks")
    return OutlineStep(
        **{
            **content,
            "inputs": tuple(OutlineInput(**one) for one in content["inputs"]),
            "times_from": tuple(content["times_from"]),
            "window": None if window is None else OutlineWindow(**window),
            "watermarks": None if marks is None else OutlineWatermarks(**marks),
        }
    )


def outline_of(plan: JobPlan, settings: Settings, engine: EngineName, started_ms: int) -> JobOutline:
    """The outline of a run that is about to start."""
    found = guarantees(plan.graph, outlives_process=settings.job_dir is not None, publishes_early=plan.publishes_early)
    return JobOutline(
        engine,
        importlib.metadata.version("headwater"),
        started_ms,
        plan.parallelism,
        plan.depth,
        _settings(plan, settings),
        _steps(plan),
        tuple(OutlinePath(one.source, one.sink, str(one.guarantee), one.reasons) for one in found),
    )


def _settings(plan: JobPlan, settings: Settings) -> dict[str, str]:
    """As users say them. Of settings of Spark only the names: values may be secrets."""
    unaligned = settings.unaligned_ms
    found = {
        "job_dir": str(settings.job_dir),
        "parallelism": str(plan.parallelism),
        "key_groups": str(plan.groups),
        "checkpoint_interval": duration_text(settings.checkpoint_interval_ms),
        "checkpoints_retained": f"{settings.checkpoints_retained:,}",
        "checkpointing": "at_least_once" if plan.publishes_early else "exactly_once",
        "unaligned": "no" if unaligned is None else duration_text(unaligned),
        "max_rows_per_epoch": f"{settings.max_rows_per_epoch:,}",
        "restart": settings.restart.describe(),
        "state_backend": plan.state_backend,
        "state_memory": size_text(plan.state_memory_bytes),
        "input": "bounded" if settings.bounded else "available now" if settings.available_now else "unbounded",
    }
    if settings.origin is not None:
        found["started from"] = str(settings.origin.path)
    return found | dict.fromkeys((f"spark: {name}" for name in sorted(settings.spark_config)), "set by the program")


def _steps(plan: JobPlan) -> tuple[OutlineStep, ...]:
    levels: dict[int, int] = {}
    times: dict[int, frozenset[str]] = {}
    found = []
    for node in plan.graph:
        uid = plan.graph.uid(node)
        own = plan.of(node).level
        levels[node.id] = own if own is not None else max((levels[edge.source] for edge in node.inputs), default=0)
        heard: frozenset[str] = frozenset().union(*(times[edge.source] for edge in node.inputs))
        times[node.id] = frozenset({uid}) if node.is_source or node.sets_time else heard
        found.append(_step(plan, node, levels[node.id], times[node.id] if node.is_source else heard))
    return tuple(found)


def _step(plan: JobPlan, node: Node, level: int, times_from: frozenset[str]) -> OutlineStep:
    graph = plan.graph
    inputs = (
        OutlineInput(
            graph.uid(graph.node(edge.source)),
            edge.tag,
            edge.exchange.describe() if edge.exchange.moves else None,
        )
        for edge in node.inputs
    )
    late = getattr(node, "late", None)
    return OutlineStep(
        graph.uid(node),
        node.operation,
        level,
        tuple(inputs),
        str(node.schema),
        node.is_source,
        node.is_sink,
        node.is_stateful,
        node.sets_time,
        _detail(plan, node),
        tuple(sorted(times_from)),
        None if late is None else late.name,
        _window(node),
        _watermarks(node.watermarks) if isinstance(node, SourceNode) else None,
    )


def _detail(plan: JobPlan, node: Node) -> str:
    end = getattr(node, "source", None) or getattr(node, "sink", None)
    if end is not None and hasattr(end, "describe"):
        return str(end.describe())
    chosen = plan.of(node)
    words = [
        "" if chosen.way is None else f"computed {chosen.way}",
        "rows combined on the way" if chosen.is_combined else "",
        "" if chosen.state is None else f"state in {chosen.state}",
    ]
    return ", ".join(word for word in words if word)


def _window(node: Node) -> OutlineWindow | None:
    assigner = getattr(node, "assigner", None)
    if assigner is None:
        return None
    size_ms, slide_ms = getattr(assigner, "size_ms", None), getattr(assigner, "slide_ms", None)
    every_ms = slide_ms or getattr(assigner, "slice_ms", None)
    in_event_time = assigner.domain == EVENT and assigner.is_bounded
    lateness_ms = getattr(node, "lateness_ms", 0)
    return OutlineWindow(
        assigner.describe(), in_event_time, every_ms, size_ms, getattr(assigner, "offset_ms", 0), lateness_ms
    )


def _watermarks(strategy: Watermarks) -> OutlineWatermarks:
    if strategy.column is None:
        text = "none"
    elif strategy.generator is not None:
        text = f"by a generator, from {strategy.column}"
    else:
        behind = f", {duration_text(strategy.delay_ms)} behind" if strategy.delay_ms else ""
        text = f"from {strategy.column}{behind}"
    return OutlineWatermarks(
        text, strategy.column, strategy.delay_ms, strategy.idle_ms, strategy.group, strategy.max_drift_ms
    )
