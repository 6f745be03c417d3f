"""What users subclass or write: process functions, aggregate functions, and the context they get."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, overload

from headwater.data.errors import NotInContext
from headwater.data.schema import Schema, SchemaLike
from headwater.measures import Metrics
from headwater.words import TimeDomain

Emitted = Iterable[Any] | None
"""What a function gives back: rows as dicts or tuples, yielded or in a list; or nothing."""

In = TypeVar("In")
Acc = TypeVar("Acc")
Out = TypeVar("Out")
Declaration = TypeVar("Declaration")


@dataclass(frozen=True, init=False)
class OutputTag:
    """The name and schema of a side output; written with `ctx.output(tag, row)`, read with `stream.side_output(tag)`."""

    name: str
    schema: Schema

    def __init__(self, name: str, schema: SchemaLike) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "schema", Schema.of(schema))


EVENT: Final = "event"
PROCESSING: Final = "processing"
"""The two times: that of rows, which watermarks tell, and that of the job's clock."""


@dataclass(frozen=True, slots=True)
class Timer:
    """A timer that fires: when it was set for and in which domain ("event" or "processing")."""

    timestamp: int
    domain: TimeDomain


class Timers(Protocol):
    """The current key's timers; times are milliseconds since the epoch, or datetimes, which are rounded down to them."""

    def event_time(self, timestamp: int | datetime) -> None:
        """Call `on_timer` when the watermark reaches `timestamp`."""

    def processing_time(self, timestamp: int | datetime) -> None:
        """Call `on_timer` when processing time reaches `timestamp`."""

    def delete_event_time(self, timestamp: int | datetime) -> None:
        """Forget an event-time timer if there is one."""

    def delete_processing_time(self, timestamp: int | datetime) -> None:
        """Forget a processing-time timer if there is one."""


class Context:
    """What a process function knows about the element or timer at hand; valid during the call only."""

    __slots__ = ("_side", "metrics", "now", "timers", "timestamp", "watermark")

    key: Any
    """The current key: a value, or a named tuple when the stream is keyed by several columns."""
    timestamp: int | None
    """The element's or event-time timer's timestamp in ms; None when it has none."""
    watermark: int
    """The step's watermark in ms."""
    now: int
    """Processing time in ms: the epoch's, the same on replay."""
    timers: Timers
    metrics: Metrics
    """What the function measures, by name: `ctx.metrics.counter("refused").inc()`."""

    if not TYPE_CHECKING:  # which would take it that a context has everything

        def __getattr__(self, name: str) -> Any:
            """Stands where a context is asked for what it has not."""
            if name in ("key", "metrics", "now", "timers", "watermark"):
                raise NotInContext.of(name)
            raise AttributeError(name)

    def output(self, tag: OutputTag, row: Any) -> None:
        """Send a row to a side output, with the current timestamp."""
        self._side.append((tag, row, self.timestamp))  # type: ignore[attr-defined]


class BroadcastContext(Context):
    """What a function beside a broadcast stream knows; with a broadcast row at hand there are neither key nor timers."""

    __slots__ = ()

    @overload
    def broadcast_state(self, state: str) -> Any: ...

    @overload
    def broadcast_state(self, state: Declaration) -> Declaration: ...

    def broadcast_state(self, state: Any) -> Any:
        """A broadcast state, by its declaration or name: to write in `process_broadcast`, to read everywhere."""
        raise NotImplementedError

    def apply_to_keyed_state(self, state: Any, function: Callable[[Any, Any], None]) -> None:
        """In `process_broadcast`: call `function(key, state)` for every key that has the state, in the order of keys.

        `state` is an attribute of the function, such as `self.total`. What is written stays written for that key.
        """
        raise NotImplementedError


class KeyedProcessFunction:
    """A function over a keyed stream, with state and timers per key. Declare state as class attributes.

    The instance is made once per subtask and reused; anything kept on it that is not declared state is lost on recovery.
    """

    def open(self) -> None:
        """Called once before the first element on each subtask."""

    def process(self, event: Any, ctx: Context) -> Emitted:
        """Called for each element."""
        raise NotImplementedError

    def on_timer(self, timer: Timer, ctx: Context) -> Emitted:
        """Called for each timer that fires."""


class CoProcessFunction:
    """A function over two connected streams. Keyed alike, both sides share the state and timers of a key.

    Rows of both sides come in the order of event time, as far as an epoch holds them; at equal times the left one first.
    """

    def open(self) -> None:
        """Called once before the first element on each subtask."""

    def process_left(self, event: Any, ctx: Context) -> Emitted:
        """Called for each element of the stream that `connect` was called on."""
        raise NotImplementedError

    def process_right(self, event: Any, ctx: Context) -> Emitted:
        """Called for each element of the stream that was given to `connect`."""
        raise NotImplementedError

    def on_timer(self, timer: Timer, ctx: Context) -> Emitted:
        """Called for each timer that fires."""


class BroadcastFunction:
    """A function over a stream without key and a broadcast stream.

    Of an epoch, all broadcast rows come first, in the order of event time and the same on every subtask.
    """

    def open(self) -> None:
        """Called once before the first element on each subtask."""

    def process(self, event: Any, ctx: BroadcastContext) -> Emitted:
        """Called for each element of the stream that `connect` was called on; broadcast state is read-only."""
        raise NotImplementedError

    def process_broadcast(self, event: Any, ctx: BroadcastContext) -> Emitted:
        """Called on every subtask for each element of the broadcast stream; what it emits is emitted by each of them.

        It must do the same everywhere: depend on the element and on broadcast state, and on nothing else.
        """
        raise NotImplementedError


class KeyedBroadcastFunction(BroadcastFunction):
    """A function over a keyed stream and a broadcast stream, with state and timers per key on the keyed side.

    Declare keyed state as class attributes, and broadcast state outside of the class.
    """

    def on_timer(self, timer: Timer, ctx: BroadcastContext) -> Emitted:
        """Called for each timer that fires; broadcast state is read-only."""


@dataclass(frozen=True, slots=True)
class Pane:
    """One firing of a window: 'early', 'on_time' or 'late', and its number, counted from 0."""

    kind: str
    index: int


class WindowContext(Context):
    """What a window function knows about the firing at hand; its `timestamp` is the result's."""

    __slots__ = ("key", "pane", "window")

    window: Any
    """The window: `start` and `end` in ms."""
    pane: Pane


class ProcessWindowFunction:
    """A function over the content of a window that fires.

    States declared as class attributes belong to the key, over all its windows; those wrapped in `per_window` to the window.
    """

    def open(self) -> None:
        """Called once before the first window on each subtask."""

    def process(self, elements: list[Any], ctx: WindowContext) -> Emitted:
        """Called for each firing, with the rows in order of arrival, or with the one row of an aggregate before it."""
        raise NotImplementedError

    def clear(self, ctx: WindowContext) -> None:
        """Called when a window is gone for good; its per-window states are cleared after this."""


class ProcessFunction:
    """A function with side outputs over any stream. Declare operator state, if there is any, as class attributes."""

    def open(self) -> None:
        """Called before the first element in each place the function runs; operator state can be read, not changed."""

    def process(self, event: Any, ctx: Context) -> Emitted:
        """Called for each element; the context has `timestamp` and `output`, and with state `watermark` and `now`."""
        raise NotImplementedError

    def restored(self, subtask: int, parallelism: int) -> None:
        """Called once, before `open`, when operator state was dealt out anew over `parallelism` subtasks.

        State can be changed here: a union list has the elements of all subtasks now, of which this one may want its own.
        """


class AggregateFunction(Generic[In, Acc, Out]):
    """An aggregate over an accumulator that is of a declared DDL type, so that it can be stored and merged."""

    def create(self) -> Acc:
        """An empty accumulator."""
        raise NotImplementedError

    def add(self, accumulator: Acc, value: In) -> Acc:
        """The accumulator with `value` in it."""
        raise NotImplementedError

    def merge(self, left: Acc, right: Acc) -> Acc:
        """Two accumulators as one."""
        raise NotImplementedError

    def retract(self, accumulator: Acc, value: In) -> Acc:
        """The accumulator without a `value` that was added; only SQL calls it, over tables that change."""
        raise NotImplementedError

    def result(self, accumulator: Acc) -> Out:
        """The result for an accumulator."""
        raise NotImplementedError


def sets_event_time_timers(function: object) -> bool:
    """Whether a method of a function's class has `timers.event_time` in it. One that sets them elsewhere is not found."""
    methods = (method for one in _own_classes(function) for method in vars(one).values())
    found = [code for method in methods if (code := getattr(method, "__code__", None)) is not None]
    while found:
        code = found.pop()
        if {"timers", "event_time"} <= set(code.co_names):
            return True
        found += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
    return False


def has_timers(function: object) -> bool:
    """Whether a function's class says what is done when a timer fires."""
    return any("on_timer" in vars(one) for one in _own_classes(function))


def _own_classes(function: object) -> list[type]:
    """The classes of a function that are not of this module."""
    cls = function if isinstance(function, type) else type(function)
    return [one for one in cls.__mro__ if one.__module__ != __name__]


def name_of(function: object) -> str:
    """The name of a step that runs a function, when nobody gave it one: that of the function's class."""
    cls = function if isinstance(function, type) else type(function)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()
