"""What every window assigner must do: give the windows that a row is in, the same whenever it is asked."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

from headwater.aggregates import count
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from headwater.data.rows import decode
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import HeadwaterError
from headwater.functions import EVENT, PROCESSING, AggregateFunction
from headwater.graph.nodes import WindowNode
from headwater.operators.contract import StepTime
from headwater.operators.registry import operator_for
from headwater.operators.stateless.functions import rows_of
from headwater.plan.rules.windows import way_of
from headwater.streams.keyed import KeyedStream
from headwater.testing.conformance.rows import STEP, Came, Rows, window_nodes
from headwater.testing.conformance.verdict import NotConforming, as_shipped, require
from headwater.windows.assigners import SlicedAssigner, Window, WindowAssigner
from headwater.windows.evictors import Evictor
from headwater.windows.triggers import EventTimeTrigger, Trigger

_LONGEST = 8
"""Distances between rows are up to ten to this power of ms: about a day."""
_END_OF_CLOCK_MS = 10**12
"""After all windows by the clock; before the end of time, which a trigger could not come behind."""

Counts = dict[tuple[Any, ...], int]
"""How many rows each key has in each window, each of which fires once; unbounded windows are not told apart."""


def check_assigner(
    assigner: WindowAssigner, schema: SchemaLike, rows: Sequence[Any], *, runs: int = 20, seed: int = 0
) -> None:
    """Check a window assigner with `runs` random sequences of rows, the same for the same `seed`.

    `rows`, of the schema, are those that the sequences draw from. Raises `NotConforming` at the first rule it breaks.
    """
    drawn = Rows(Schema.of(schema), rows)
    if not len(drawn):
        raise ValueError("give rows to check an assigner with")
    _check_facts(assigner)
    for run in range(runs):
        chance = random.Random(f"{seed} {run}")  # noqa: S311  not for secrets
        came = list(_came(chance, len(drawn), is_clock=assigner.domain == PROCESSING))
        _check_windows(assigner, drawn, came)
        _check_counts(assigner, drawn, came, chance)


def _check_facts(assigner: WindowAssigner) -> None:
    words = assigner.describe()
    require(assigner, "describe() says in a few words what it is", f"it gave {words!r}", holds=bool(words))
    good = assigner.domain in (EVENT, PROCESSING)
    require(assigner, "domain is 'event' or 'processing'", f"it is {assigner.domain!r}", holds=good)
    trigger, evictor = assigner.default_trigger(), assigner.default_evictor()
    good = isinstance(trigger, Trigger)
    require(assigner, "default_trigger() gives a hw.Trigger", f"it gave {trigger!r}", holds=good)
    rule = "the default trigger of windows that merge can merge"
    require(assigner, rule, f"{trigger.describe()} cannot", holds=trigger.can_merge or not assigner.merges)
    good = evictor is None or isinstance(evictor, Evictor)
    require(assigner, "default_evictor() gives a hw.Evictor or None", f"it gave {evictor!r}", holds=good)


def _came(chance: random.Random, rows: int, *, is_clock: bool) -> Iterator[Came]:
    """Some rows in bursts, near to each other and far apart; by the clock they come in order."""
    moment = 0
    times = []
    for _ in range(chance.randint(2, 12)):
        moment += chance.choice((1, 1, -1)) * chance.randrange(10 ** chance.randint(0, _LONGEST))
        times.append(abs(moment) if is_clock else moment)
    for timestamp in sorted(times) if is_clock else times:
        yield Came(chance.choice("ab"), chance.randrange(rows), timestamp)


def _check_windows(assigner: WindowAssigner, rows: Rows, came: list[Came]) -> None:
    """One row after the other: its windows are windows, it is in them, and they are always the same."""
    events = list(rows_of(rows.batch(came).table, rows.schema.row))
    found = [_assigned(assigner, event, one) for event, one in zip(events, came, strict=True)]
    for windows, one in zip(found, came, strict=True):
        _check_row(assigner, windows, one)
    other = as_shipped(assigner)
    for number in reversed(range(len(came))):
        rule = "assign() gives the same windows for the same row and time, in another process and whatever was asked before"
        again = _assigned(other, events[number], came[number])
        fact = f"{_text(came[number])} was in {found[number]}, then in {again}"
        require(assigner, rule, fact, holds=again == found[number])


def _assigned(assigner: WindowAssigner, event: Any, one: Came) -> list[Any]:
    try:
        return list(assigner.assign(event, one.timestamp))
    except HeadwaterError:
        raise
    except Exception as error:
        fact = f"{_text(one)}: {type(error).__name__}: {error}"
        raise NotConforming.of(assigner, "assign() gives windows for the rows it is checked with", fact) from error


def _check_row(assigner: WindowAssigner, windows: list[Any], one: Came) -> None:
    of_row = f"{_text(one)} is in {windows}"
    good = all(isinstance(w, Window) and type(w.start) is type(w.end) is int and w.start < w.end for w in windows)
    require(assigner, "assign() gives windows that start, in whole ms, before they end", of_row, holds=good)
    require(assigner, "a row is in a window once", of_row, holds=len(set(windows)) == len(windows))
    good = not assigner.is_bounded or all(w.start <= one.timestamp <= w.last for w in windows)
    require(assigner, "a row's timestamp is in its windows", of_row, holds=good)
    rule = "windows that merge are one for each row, which then grows"
    require(assigner, rule, of_row, holds=not assigner.merges or len(windows) == 1)
    if isinstance(assigner, SlicedAssigner):
        rule = "the windows of a slice are those of its rows, earliest end first"
        same = windows == list(assigner.windows_of_slice(assigner.slice_of(one.timestamp)))
        require(assigner, rule, of_row, holds=same and windows == sorted(windows, key=lambda w: w.end))


def _check_counts(assigner: WindowAssigner, rows: Rows, came: list[Came], chance: random.Random) -> None:
    """All of them in a step: what windows hold does not depend on how rows come."""
    steps = _Steps(assigner, rows)
    counts = steps.counts(steps.by_element, came, at_once=1)
    ways = [
        ("by columns, one by one", steps.by_columns, came, 1),
        ("by columns, together", steps.by_columns, came, 1_000),
    ]
    ways.append(("together", steps.by_element, came, 1_000))
    if assigner.domain == EVENT:  # the clock does not go back
        shuffled = chance.sample(came, len(came))
        ways.append((f"in the order {', '.join(map(_text, shuffled))}", steps.by_element, shuffled, 3))
    for way, node, order, at_once in ways:
        others = steps.counts(node, order, at_once=at_once)
        rule = "windows hold the same in whatever order, and however many at once, rows come"
        fact = f"of {', '.join(map(_text, came))}, one by one there are {counts}, {way} {others}"
        require(assigner, rule, fact, holds=others == counts)


class _Count(AggregateFunction[Any, int, int]):
    """The number of rows, by Python."""

    def create(self) -> int:
        return 0

    def add(self, accumulator: int, value: Any) -> int:
        return accumulator + 1

    def merge(self, left: int, right: int) -> int:
        return left + right

    def result(self, accumulator: int) -> int:
        return accumulator


class _Steps:
    """Two steps that count the rows of windows: one that sees each row, and one by columns where that can be."""

    def __init__(self, assigner: WindowAssigner, rows: Rows) -> None:
        self._assigner, self._rows = assigner, rows

        def build(keyed: KeyedStream) -> None:
            handle = keyed.window(assigner)
            if not assigner.is_bounded:
                handle = handle.trigger(EventTimeTrigger())  # of the end of all time
            handle.aggregate(_Count(), accumulator="long", schema="n long")
            handle.agg(n=count())

        self.by_element, self.by_columns = window_nodes(rows.schema, build)

    def counts(self, node: WindowNode, came: list[Came], *, at_once: int) -> Counts:
        """What the windows hold in the end, when so many rows come together, or as many as come at one time of the clock."""
        operator: Any = operator_for(node, STEP, [self._rows.schema], way=way_of(node))
        found: Counts = {}

        def emit(_: str | None, batch: Batch) -> None:
            *scopes, counted = (decode(column) for column in batch.table.columns)
            for scope, n in zip(zip(*scopes, strict=True), counted, strict=True):
                found[scope] = found.get(scope, 0) + n

        time = StepTime(MIN_TIMESTAMP, 0)
        for moment, group in itertools.groupby(came, lambda one: one.timestamp if self._is_clock else 0):
            some = list(group)
            time = StepTime(MIN_TIMESTAMP, moment)
            operator.advance_clock(time, emit)
            for start in range(0, len(some), at_once):
                operator.process(self._rows.batch(some[start : start + at_once]), time, emit)
        operator.advance_clock(StepTime(MIN_TIMESTAMP, _END_OF_CLOCK_MS), emit)
        operator.advance_watermark(StepTime(MAX_TIMESTAMP, _END_OF_CLOCK_MS), emit)
        return found

    @property
    def _is_clock(self) -> bool:
        return self._assigner.domain == PROCESSING


def _text(one: Came) -> str:
    return f"{one.key}@{one.timestamp} (rows[{one.row}])"
