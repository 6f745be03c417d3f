"""What all handles on windows have in common: what fires them, what leaves them, and how long they are kept."""

from __future__ import annotations

import copy
from typing import Any, Self

import pyarrow as pa

from headwater.data.schema import Schema
from headwater.descriptors import ReducingState
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.windows.assigners import EVENT, WindowAssigner
from headwater.windows.evictors import Evictor
from headwater.windows.triggers import Trigger, checked

WINDOW_COLUMNS = {"window_start": pa.timestamp("us", "UTC"), "window_end": pa.timestamp("us", "UTC")}
"""The window in a row."""
LATE_COLUMNS = {**WINDOW_COLUMNS, "late_by_ms": pa.int64()}
"""What the side output of late rows may show besides their own fields."""


class Windowing:
    """The settings of windows over rows of a schema. Each call gives a new handle."""

    def __init__(self, schema: Schema, assigner: WindowAssigner) -> None:
        if not isinstance(assigner, WindowAssigner):
            raise GraphError.bad_argument("window", "needs windows", assigner, "write window(hw.tumbling('10 s'))")
        self._schema, self._assigner = schema, assigner
        self._trigger: Trigger | None = None
        self._evictor: Evictor | None = None
        self._evicts_after = False
        self._lateness_ms = 0

    def trigger(self, trigger: Trigger) -> Self:
        """Fire as the trigger says instead of at the window's end."""
        trigger = checked(trigger, "trigger")
        if self._assigner.merges:
            self._check_merges(trigger)
        return self._with(_trigger=trigger)

    def evict(self, evictor: Evictor, *, after: bool = False) -> Self:
        """Let elements leave when the window fires, before or after the function sees them."""
        if not isinstance(evictor, Evictor):
            raise GraphError.bad_argument("evict", "needs a hw.Evictor", evictor, "use one of hw.evictors")
        return self._with(_evictor=evictor, _evicts_after=after)

    def allow_lateness(self, lateness: Duration) -> Self:
        """Keep windows for so long after their end: late rows update them, and each update fires."""
        if self._assigner.domain != EVENT:
            raise GraphError.bad_argument(
                "allow_lateness", "needs windows in event time", self._assigner.describe(), "leave it out"
            )
        return self._with(_lateness_ms=duration_ms(lateness, what="the allowed lateness"))

    # -- inside -----------------------------------------------------------------------------------------------------

    def _evicting(self) -> Evictor | None:
        """What lets elements leave: the user's choice, or the windows' own."""
        return self._evictor or self._assigner.default_evictor()

    def _with(self, **settings: Any) -> Self:
        other = copy.copy(self)
        vars(other).update(settings)
        return other

    def _check_merges(self, trigger: Trigger) -> None:
        """A trigger of windows that merge must say that it can, and keep only what can be combined."""
        name = type(trigger).__name__.removeprefix("_")
        if not trigger.can_merge:
            raise GraphError.bad_argument(
                "trigger", "needs a trigger that can merge, for windows that do", name, "use one with can_merge"
            )
        for state in trigger.states(self._schema, "trigger"):
            if not isinstance(state, ReducingState):
                raise GraphError.bad_argument(
                    "trigger",
                    "needs a trigger that keeps reducing states only, for windows that merge",
                    f"{name}.{state.attribute} is a {type(state).__name__}",
                    "declare it as hw.ReducingState",
                )
        for part in trigger.parts():
            self._check_merges(part)

    def _check_late(self, tag: OutputTag, schema: Schema, step: str) -> None:
        """A tag for late rows of a schema shows their fields, and what they missed."""
        if self._assigner.domain != EVENT:
            raise GraphError.bad_argument(
                step,
                "needs windows in event time: in processing time nothing is late",
                self._assigner.describe(),
                "leave it out",
            )
        known = {f.name: f.type for f in schema.arrow} | LATE_COLUMNS
        for field in tag.schema.arrow:
            if known.get(field.name) != field.type:
                raise GraphError.bad_argument(
                    step,
                    "needs a tag whose fields are the row's, or window_start and window_end timestamp, late_by_ms bigint",
                    f"{field.name} {field.type}",
                    f"choose from {', '.join(known)}",
                )

    def _firing(self, step: str) -> Trigger:
        """The trigger: the one that was given, or the windows' own."""
        trigger = self._trigger or self._assigner.default_trigger()
        if self._trigger is None and not trigger.can_fire:
            raise GraphError.bad_argument(
                step, "needs a trigger: these windows have no end", self._assigner.describe(), "add .trigger(...)"
            )
        return trigger

    def _window_fields(self) -> list[pa.Field]:
        """The columns in which results show their window; windows without bounds are not shown."""
        return [pa.field(*column) for column in WINDOW_COLUMNS.items()] if self._assigner.is_bounded else []
