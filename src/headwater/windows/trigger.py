"""What a trigger is: what it is asked, what it says, and what it may know.

A trigger keeps its state in declared states, as functions do, one per window; timers are the window's own. When windows
merge, reducing states are combined, and `rearm` sets the timers that the merged window needs.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from headwater.data.batch import Timestamps
from headwater.data.schema import Schema
from headwater.declared import keyed_states
from headwater.descriptors import StateDeclaration
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import Timers


class TriggerResult(enum.Flag):
    """What to do with a window."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3


CONTINUE, FIRE = TriggerResult.CONTINUE, TriggerResult.FIRE


class Firings(NamedTuple):
    """After which of the rows that came together a window fires, in order, and where its content is dropped then."""

    places: npt.NDArray[np.int64]
    purges: npt.NDArray[np.bool_]

    @classmethod
    def at(cls, places: npt.NDArray[np.int64]) -> Firings:
        """Firings that drop nothing."""
        return cls(places, np.zeros(len(places), np.bool_))

    def behind(self, rows: int) -> Firings:
        """The same after so many rows more."""
        return Firings(self.places + rows, self.purges)


NO_FIRINGS = Firings.at(np.empty(0, np.int64))


class _Window(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def last(self) -> int: ...


class TriggerContext:
    """What a trigger knows; valid during the call only."""

    __slots__ = ("key", "now", "timers", "timestamp", "watermark", "window")

    key: Any
    window: _Window
    timestamp: int | None
    """The element's timestamp in ms; None when it has none."""
    watermark: int
    now: int
    """Processing time in ms."""
    timers: Timers


class Trigger:
    """Decides when a window fires. Subclass it for a trigger of your own; declare state as class attributes.

    What it says of rows it says in one class: of each row (`on_element`), or, where that depends on nothing but their
    timestamps, of each and of many at once (`on_rows`). The second is used where nobody needs rows as Python values, for a
    trigger and all its parts or for none of them.
    """

    can_merge = False
    """Whether it works for windows that merge: its states are then reducing states."""
    looks_at_parts = False
    """Whether it looks itself at what its parts say, as one that checks them does."""
    can_fire = True
    """Whether it ever fires by itself."""
    waits_for_time = False
    """Whether, while the watermark is before the window's end, it makes no difference how many rows came, and when."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """A row came into the window."""
        raise NotImplementedError

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        """Rows with these timestamps came into the window, in this order: what `on_element` says of each, in one call."""
        raise NotImplementedError

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        """For a trigger with `on_rows`: after how many rows, at the earliest, it fires if nothing but rows comes.

        Compositions that start it over or take turns ask, and give it no more rows than that at once. None if rows alone
        never make it fire; 1 is always right.
        """
        return 1

    def takes_rows(self) -> bool:
        """Whether it and its parts can be asked for many rows at once."""
        kind = type(self)
        giver = next(cls for cls in kind.__mro__ if "on_element" in vars(cls))
        own = vars(giver)
        is_pair = own.get("on_rows") is kind.on_rows is not Trigger.on_rows
        is_whole = kind.rows_to_fire in (own.get("rows_to_fire"), Trigger.rows_to_fire)
        return is_pair and is_whole and all(part.takes_rows() for part in self.parts())

    def __init_subclass__(cls) -> None:
        """A class has the forms for many rows together with that for each: another's do not know what it does."""
        super().__init_subclass__()
        own = vars(cls)
        if "on_rows" not in own and "rows_to_fire" not in own:
            return
        needed = ["on_element", "on_rows"]
        if cls.rows_to_fire is not Trigger.rows_to_fire:
            needed.append("rows_to_fire")
        if missing := [name for name in needed if name not in own]:
            raise GraphError.half_trigger(cls.__name__, missing)

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        """An event-time timer of the window fires; it may be another trigger's."""
        return CONTINUE

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        """A processing-time timer of the window fires; it may be another trigger's."""
        return CONTINUE

    def rearm(self, ctx: TriggerContext) -> None:
        """Set the timers that the window needs from now on: it came out of a merge, or the trigger's turn has come."""

    def clear(self, ctx: TriggerContext) -> None:
        """The window is gone: delete timers. Declared states are cleared by the runtime."""

    def is_done(self) -> bool:
        """Whether, having fired, it has done all it does before it would start over."""
        return True

    def parts(self) -> Sequence[Trigger]:
        """The triggers it is composed of."""
        return ()

    def describe(self) -> str:
        """The trigger and its parts in a word each; state fits as long as this is the same."""
        parts = ", ".join(part.describe() for part in self.parts())
        return f"{type(self).__name__}({parts})"

    def __repr__(self) -> str:
        return f"<{self.describe()}>"

    def states(self, schema: Schema, step: str) -> list[StateDeclaration]:
        """The states it keeps; by default those declared on its class."""
        states = keyed_states(self, step)
        for state in states:
            if state.ttl is not None:
                raise GraphError.bad_argument(
                    step, "has a trigger whose state goes with its window", f"{state.name} with a ttl", "leave ttl= out"
                )
        return states

    def reset(self) -> None:
        """Start over: no state, here and in its parts. Timers stay, as others may wait for them too."""
        for part in self.parts():
            part.reset()
        for value in vars(self).values():
            if hasattr(value, "changes") and hasattr(value, "clear"):  # an opened state
                value.clear()


def count_rows(seen: Any, count: int, rows: int) -> Firings:
    """Where a count is reached by so many rows more; keeps what is left of them in the state `seen`."""
    before = seen.get() or 0
    if before:
        seen.clear()
    if left := (before + rows) % count:
        seen.add(left)
    return Firings.at(np.arange(count - before - 1, rows, count)) if before + rows >= count else NO_FIRINGS


def checked(trigger: Any, step: str) -> Trigger:
    """The trigger, if it is one."""
    if not isinstance(trigger, Trigger):
        raise GraphError.bad_argument(step, "needs a hw.Trigger", trigger, "use one of hw.triggers")
    return trigger


def interval_ms(interval: Duration, name: str) -> int:
    """The interval of a trigger, which is more than nothing."""
    millis = duration_ms(interval, what=f"the interval of triggers.{name}", negative=True)
    if millis <= 0:
        raise GraphError.bad_argument(f"triggers.{name}", "needs an interval of more than 0", interval, "write '10 s'")
    return millis
