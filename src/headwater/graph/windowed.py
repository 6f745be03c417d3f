"""Flows with their windows: what fires them, what leaves them, how long they are kept. Checked when made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headwater.data.schema import Schema
from headwater.descriptors import ReducingState
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import EVENT, OutputTag
from headwater.graph.checks import check_both_keyed, check_has_watermarks, check_how, check_states
from headwater.graph.edges import GLOBAL
from headwater.graph.flow import Flow
from headwater.windows.assigners import WindowAssigner
from headwater.windows.evictors import Evictor
from headwater.windows.trigger import Trigger, checked

WINDOW_COLUMNS = {"window_start": pa.timestamp("us", "UTC"), "window_end": pa.timestamp("us", "UTC")}
"""The window in a row."""
LATE_COLUMNS = {**WINDOW_COLUMNS, "late_by_ms": pa.int64()}
"""What the side output of late rows may show besides their own fields."""
_LATENESS = "the allowed lateness"
JOINS = ("inner", "left", "right", "full", "semi", "anti")
"""The kinds of joins in windows; the last two show left rows alone: those that met some, and those that met none."""
_MODES = ("accumulating", "discarding", "retracting")


@dataclass(frozen=True)
class Panes:
    """What the firings of a window give: 'discarding', 'accumulating' or 'retracting', and what rows tell about them."""

    mode: str = "accumulating"
    has_info: bool = False
    has_empty: bool = False

    def __post_init__(self) -> None:
        if self.mode not in _MODES:
            raise GraphError.bad_argument("panes", f"needs one of {', '.join(_MODES)}", self.mode, "choose one of them")


@dataclass(frozen=True, kw_only=True)
class Windowing:
    """What all windows have."""

    assigner: WindowAssigner
    trigger: Trigger | None = None
    """What fires them, if it is not their own trigger."""
    evictor: Evictor | None = None
    evicts_after: bool = False
    lateness: Duration | None = None
    """How long they are kept after their end."""

    def __post_init__(self) -> None:
        if not isinstance(self.assigner, WindowAssigner):
            raise GraphError.bad_argument("window", "needs windows", self.assigner, "write window(hw.tumbling('10 s'))")
        if self.trigger is not None:
            _check_trigger(checked(self.trigger, "trigger"))
            if self.assigner.merges:
                _check_merges(self.trigger, self.rows)
        if self.evictor is not None and not isinstance(self.evictor, Evictor):
            raise GraphError.bad_argument("evict", "needs a hw.Evictor", self.evictor, "use one of hw.evictors")
        if self.lateness is not None:
            if self.assigner.domain != EVENT:
                raise GraphError.bad_argument(
                    "allow_lateness", "needs windows in event time", self.assigner.describe(), "leave it out"
                )
            duration_ms(self.lateness, what=_LATENESS)

    @property
    def rows(self) -> Schema:
        """The rows that windows hold."""
        raise NotImplementedError

    @property
    def lateness_ms(self) -> int:
        return 0 if self.lateness is None else duration_ms(self.lateness, what=_LATENESS)

    @property
    def evicting(self) -> Evictor | None:
        """What lets elements leave: the user's choice, or the windows' own."""
        return self.evictor or self.assigner.default_evictor()

    @property
    def fields(self) -> list[pa.Field]:
        """The columns in which results show their window; windows without bounds are not shown."""
        return [pa.field(*column) for column in WINDOW_COLUMNS.items()] if self.assigner.is_bounded else []

    def firing(self, step: str) -> Trigger:
        """The trigger: the one that was given, or the windows' own."""
        trigger = self.trigger or self.assigner.default_trigger()
        if self.trigger is None and not trigger.can_fire:
            raise GraphError.bad_argument(
                step, "needs a trigger: these windows have no end", self.assigner.describe(), "add .trigger(...)"
            )
        return trigger

    def _check_late(self, tag: OutputTag | None, rows: Schema, setting: str) -> None:
        """A tag for late rows of a schema shows their fields, and what they missed."""
        if tag is None:
            return
        if self.assigner.domain != EVENT:
            raise GraphError.bad_argument(
                setting,
                "needs windows in event time: in processing time nothing is late",
                self.assigner.describe(),
                "leave it out",
            )
        known = {f.name: f.type for f in rows.arrow} | LATE_COLUMNS
        for field in tag.schema.arrow:
            if known.get(field.name) != field.type:
                raise GraphError.bad_argument(
                    setting,
                    "needs a tag whose fields are the row's, or window_start and window_end timestamp, late_by_ms bigint",
                    f"{field.name} {field.type}",
                    f"choose from {', '.join(known)}",
                )


@dataclass(frozen=True, kw_only=True)
class Windowed(Windowing):
    """The windows of a flow that is keyed, or all in one place."""

    flow: Flow
    late: OutputTag | None = None
    panes: Panes = Panes()

    def __post_init__(self) -> None:
        if self.flow.key.is_nothing and any(edge.exchange != GLOBAL for edge in self.flow.edges):
            raise GraphError.needs_keyed("window", "a stream without key")
        super().__post_init__()
        self._check_late(self.late, self.flow.schema, "late_to")

    @property
    def rows(self) -> Schema:
        return self.flow.schema

    @property
    def is_plain(self) -> bool:
        """Whether trigger and evictor are the windows' own."""
        return self.trigger is None and self.evictor is None


@dataclass(frozen=True, kw_only=True)
class WindowedPair(Windowing):
    """The windows of two keyed flows together. Functions of triggers, evictors and windows see rows of both.

    Such a row has `left` and `right`, one of which is None, and `key`.
    """

    left: Flow
    right: Flow
    meets: str = "join"
    """What becomes of the rows: 'join' or 'cogroup'."""
    how: str = "inner"
    """Which rows a join shows; one of JOINS."""
    late_left: OutputTag | None = None
    late_right: OutputTag | None = None

    def __post_init__(self) -> None:
        check_both_keyed(self.left, self.right, self.meets)
        check_how(self.how, JOINS, self.meets)
        super().__post_init__()
        self._check_late(self.late_left, self.left.schema, "late_left")
        self._check_late(self.late_right, self.right.schema, "late_right")

    @property
    def step(self) -> str:
        """The name of the step they become."""
        return f"window_{self.meets}"

    @property
    def shows_left_alone(self) -> bool:
        """Whether what is shown is rows of the left, and the right only says which."""
        return self.how in ("semi", "anti")

    @property
    def rows(self) -> Schema:
        """`key`, `left` and `right`: a row of one of the two inputs."""
        sides = {"left": self.left.schema, "right": self.right.schema}
        fields = [pa.field(name, _as_value(rows)) for name, rows in sides.items()]
        return Schema(pa.schema([pa.field("key", self.left.key.type), *fields]))

    def check_watermarks(self) -> None:
        """Windows in event time need some."""
        if self.assigner.domain == EVENT and self.assigner.is_bounded:
            check_has_watermarks(self.left, self.right, self.step)


def _as_value(rows: Schema) -> pa.DataType:
    """A row as a value; where the other input has one, its fields are null, also those declared not null."""
    return pa.struct([pa.field(field.name, field.type) for field in rows.arrow])


def _check_trigger(trigger: Trigger) -> None:
    check_states(trigger, type(trigger).__name__)
    for part in trigger.parts():
        _check_trigger(part)


def _check_merges(trigger: Any, rows: Schema) -> None:
    """A trigger of windows that merge must say that it can, and keep only what can be combined."""
    name = type(trigger).__name__.removeprefix("_")
    if not trigger.can_merge:
        raise GraphError.bad_argument(
            "trigger", "needs a trigger that can merge, for windows that do", name, "use one with can_merge"
        )
    for state in trigger.states(rows, "trigger"):
        if not isinstance(state, ReducingState):
            raise GraphError.bad_argument(
                "trigger",
                "needs a trigger that keeps reducing states only, for windows that merge",
                f"{name}.{state.attribute} is a {type(state).__name__}",
                "declare it as hw.ReducingState",
            )
    for part in trigger.parts():
        _check_merges(part, rows)
