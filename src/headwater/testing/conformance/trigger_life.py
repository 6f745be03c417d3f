"""The life of windows under a trigger: rows and time, as the window operator hands them on, and what the trigger says."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

from headwater.aggregates import count
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps
from headwater.data.schema import Schema
from headwater.descriptors import ReducingState
from headwater.errors import UserCodeError
from headwater.functions import EVENT, AggregateFunction, ProcessWindowFunction, WindowContext
from headwater.operators.contract import StepTime
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.triggering import with_parts
from headwater.plan.rules.windows import way_of
from headwater.streams.keyed import KeyedStream
from headwater.testing.conformance.rows import STEP, Came, Rows, window_nodes
from headwater.testing.conformance.verdict import NotConforming, require
from headwater.windows.assigners import WindowAssigner
from headwater.windows.triggers import Firings, Trigger, TriggerContext, TriggerResult

_ENDLESS = 10_000
"""More timers than any of the lives can need when time moves once."""


@dataclasses.dataclass(frozen=True)
class Moved:
    """A time of a script: the watermark, or the clock, has moved."""

    domain: str
    to: int


Action = tuple[Came, ...] | Moved
Script = Sequence[Action]


class Word(NamedTuple):
    """What the trigger said of a window, if it was not CONTINUE: of a row, by its timestamp, or of a timer, by its time."""

    action: int
    key: str
    window: tuple[int, int]
    about: str
    timestamp: int
    result: TriggerResult

    def __str__(self) -> str:
        of = f"of the {self.about} at {self.timestamp}"
        return f"{self.result.name} {of} in window {list(self.window)} of key {self.key!r}"


class _Said:
    """All that a trigger said, and how often it was asked about timers. Copies of a trigger share it."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.action = 0
        self.timers = 0
        self.breach: NotConforming | None = None

    def __deepcopy__(self, memo: object) -> _Said:
        return self

    def note(self, about: str, timestamp: int | None, result: TriggerResult, ctx: TriggerContext) -> None:
        if result:
            at = MIN_TIMESTAMP if timestamp is None else timestamp
            window = (ctx.window.start, ctx.window.end)
            self.words.append(Word(self.action, ctx.key, window, about, at, result))


class _Probe(Trigger):
    """The trigger, asked for each row; notes what it says."""

    looks_at_parts = True

    def __init__(self, inner: Trigger, said: _Said) -> None:
        self.inner, self.said = inner, said
        self.can_merge, self.can_fire, self.waits_for_time = inner.can_merge, inner.can_fire, inner.waits_for_time

    def parts(self) -> tuple[Trigger]:
        return (self.inner,)

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return self._noted("row", ctx.timestamp, self.inner.on_element(event, ctx), ctx)

    def on_event_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        self._count_timer()
        return self._noted("event-time timer", timestamp, self.inner.on_event_time(timestamp, ctx), ctx)

    def on_processing_time(self, timestamp: int, ctx: TriggerContext) -> TriggerResult:
        self._count_timer()
        return self._noted("processing-time timer", timestamp, self.inner.on_processing_time(timestamp, ctx), ctx)

    def rearm(self, ctx: TriggerContext) -> None:
        self.inner.rearm(ctx)

    def clear(self, ctx: TriggerContext) -> None:
        self.inner.clear(ctx)

    def _noted(self, about: str, timestamp: int | None, result: Any, ctx: TriggerContext) -> TriggerResult:
        rule = "it says one of hw.TriggerResult of each row and timer"
        self._require(rule, f"of a {about} it said {result!r}", holds=isinstance(result, TriggerResult))
        self.said.note(about, timestamp, result, ctx)
        return TriggerResult(result)

    def _count_timer(self) -> None:
        self.said.timers += 1
        rule = "timers come to an end: it sets none for ever, and clear() deletes those that are set"
        found = f"time moved once and {_ENDLESS} timers fired"
        self._require(rule, found, holds=self.said.timers < _ENDLESS)

    def _require(self, rule: str, found: str, *, holds: bool) -> None:
        try:
            require(self.inner, rule, found, holds=holds)
        except NotConforming as breach:  # kept, as the operator takes it for an error of user code
            self.said.breach = breach
            raise


class _ProbeOfMany(_Probe):
    """The same, asked for many rows at once where the operator can."""

    def on_element(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        return super().on_element(event, ctx)

    def on_rows(self, timestamps: Timestamps, ctx: TriggerContext) -> Firings:
        rows = self.inner.rows_to_fire(ctx)
        firings = self.inner.on_rows(timestamps, ctx)
        after = None if not len(firings.places) else int(firings.places[0]) + 1
        rule = "rows_to_fire() is at most the number of rows after which it fires, and None only if it does not"
        found = f"it was {rows}, and row {after} from there made it fire"
        self._require(rule, found, holds=after is None or (rows is not None and rows <= after))
        for place, purges in zip(firings.places.tolist(), firings.purges.tolist(), strict=True):
            result = TriggerResult.FIRE_AND_PURGE if purges else TriggerResult.FIRE
            self.said.note("row", int(timestamps[place]), result, ctx)
        return firings

    def rows_to_fire(self, ctx: TriggerContext) -> int | None:
        return self.inner.rows_to_fire(ctx)


class TriggerLife:
    """Windows of some keys under a trigger, on one subtask."""

    def __init__(self, steps: Steps, rows: Rows, *, at_once: int | None = None, moves: int = 1) -> None:
        """If `at_once` is said, the trigger is asked for so many rows at most, else for each. Each time moves so often."""
        self._said, self._rows, self._at_once, self._moves = _Said(), rows, at_once, moves
        node = steps.by_element if at_once is None else steps.by_rows
        self._inner = node.trigger
        self._probe = (_Probe if at_once is None else _ProbeOfMany)(node.trigger, self._said)
        self._node = dataclasses.replace(node, trigger=self._probe)
        self._operator = self._new_operator()
        self._watermark_ms, self._now_ms = MIN_TIMESTAMP, 0

    def _new_operator(self) -> WindowOperator:
        return WindowOperator(self._node, STEP, self._rows.schema.row, way=way_of(self._node))

    @property
    def words(self) -> list[Word]:
        """What the trigger said so far."""
        return self._said.words

    def live(self, script: Script, *, first: int = 0, is_restored: bool = False) -> list[Word]:
        """Do what the script says, perhaps with a restore from a snapshot after each action; what the trigger said.

        Actions are numbered from `first` on.
        """
        for number, action in enumerate(script, first):
            self._said.action, self._said.timers = number, 0
            try:
                self._act(action)
            except UserCodeError as error:
                rule = "it raises nothing for the rows it is checked with"
                raise self._said.breach or NotConforming.of(self._inner, rule, error.cause) from error
            if is_restored:
                self._restore()
        return self.words

    def _act(self, action: Action) -> None:
        if isinstance(action, Moved):
            self._move(action)
            return
        size = self._at_once or len(action)
        for start in range(0, len(action), size):
            self._operator.process(self._rows.batch(action[start : start + size]), self._time, _drop)

    def _move(self, moved: Moved) -> None:
        before = self._watermark_ms if moved.domain == EVENT else self._now_ms
        steps = 1 if before == MIN_TIMESTAMP or moved.to == MAX_TIMESTAMP else self._moves
        for step in range(1, steps + 1):
            to = max(before, moved.to - (moved.to - before) * (steps - step) // steps)
            if moved.domain == EVENT:
                self._watermark_ms = to
                self._operator.advance_watermark(self._time, _drop)
            else:
                self._now_ms = to
                self._operator.advance_clock(self._time, _drop)

    @property
    def _time(self) -> StepTime:
        return StepTime(self._watermark_ms, self._now_ms)

    def _restore(self) -> None:
        """Go on with another copy of the trigger, which knows what is stored and nothing else."""
        restored = self._new_operator()
        before = self._operator.tables()
        for name, table in restored.tables().items():
            table.apply(before[name].dump())
        restored.set_meta(self._operator.meta())
        self._operator = restored

    def left(self) -> dict[str, int]:
        """How much is still stored of the trigger's states and of timers, where there is something."""
        stored = {name: len(table.dump()) for name, table in self._operator.tables().items()}
        return {name: rows for name, rows in stored.items() if name.startswith(("@trigger", "@timers")) and rows}

    def values(self) -> dict[ReducingState[Any], list[Any]]:
        """What the states that can be combined hold now."""
        found: dict[ReducingState[Any], list[Any]] = {}
        for number, part in enumerate(with_parts(self._probe)):
            for state in part.states(self._rows.schema, STEP):
                if isinstance(state, ReducingState):
                    table = self._operator.tables()[f"@trigger.{number}.{state.name}"].dump()
                    found[state] = table.column("value").to_pylist()
        return found


class _Nothing(AggregateFunction[Any, int, int]):
    """Windows hold something, and nobody cares what."""

    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        return accumulator

    def result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, one: int, other: int) -> int:
        return one


class _Silent(ProcessWindowFunction):
    """Gives nothing."""

    def process(self, elements: Any, ctx: WindowContext) -> None:
        return


class Steps:
    """Two steps with the same windows: one that sees each row, and one by columns. Scripts say the keys of rows."""

    def __init__(self, trigger: Trigger, windows: WindowAssigner, lateness_ms: int, schema: Schema) -> None:
        self.trigger, self.windows = trigger, windows

        def build(keyed: KeyedStream) -> None:
            handle = keyed.window(windows).trigger(trigger)
            if windows.domain == EVENT and windows.is_bounded:
                handle = handle.allow_lateness(f"{lateness_ms} ms")
            handle.aggregate(_Nothing(), accumulator="long", result="n long", process=_Silent(), schema="n long")
            handle.agg(rows=count())

        self.by_element, self.by_rows = window_nodes(schema, build)


def _drop(tag: str | None, batch: Batch) -> None:
    """What comes out of windows is not looked at; what the trigger said is."""
