"""Windows over changelogs: they hold the rows that are left."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from headwater.data.row_kinds import ROW_KIND_FIELD, kind_names
from headwater.data.rows import encode_rows
from headwater.graph.nodes import WindowNode
from headwater.operators.contract import StepTime, TakesCombined
from headwater.operators.registry import combiner_for, operator_for
from headwater.operators.window.sliced import SlicedWindowOperator
from headwater.plan.rules.windows import way_of

SCHEMA = hw.Schema.of("k string, v bigint, s string, ts bigint")
KINDS = ("+I", "-U", "+U", "-D")

Change = tuple[str, str, int | None, str | None, int]
"""What a row does, its values, and its time, which is one of them."""


def rows(env: hw.Environment) -> hw.KeyedStream:
    changes = env.from_rows([], f"{SCHEMA}, row_kind string", hw.Watermarks.monotonous("ts"))
    return changes.as_changelog().key_by("k")


def node_of(
    windows: hw.WindowAssigner, panes: str = "accumulating", trigger: hw.Trigger | None = None, **aggregates: Any
) -> WindowNode:
    env = hw.Environment("windows", engine="local")
    stream = rows(env).window(windows).panes(panes)
    stream = stream.allow_lateness("1 h") if panes == "retracting" else stream
    stream = stream if trigger is None else stream.trigger(trigger)
    node = env.graph.node(stream.agg(**aggregates)._flow.origin)
    assert isinstance(node, WindowNode)
    return node


def batch_of(changes: list[Change]) -> Batch:
    table = encode_rows([change[1:] for change in changes], SCHEMA.arrow, "test")
    kinds = np.array([KINDS.index(change[0]) for change in changes], np.int8)
    return Batch(table, np.array([change[-1] for change in changes], np.int64), None, kinds)


@dataclass
class Job:
    """One window step over a changelog; it is made anew out of what it stored before every epoch."""

    node: WindowNode
    is_combined: bool = False
    watermark: int = MIN_TIMESTAMP
    dumps: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] | None = None

    def run(self, *changes: Change, to: int | None = None, now: int = 0) -> list[dict[str, Any]]:
        """The rows of an epoch, and then a watermark; gives the results."""
        operator: Any = operator_for(self.node, "agg", [SCHEMA], way=way_of(self.node))
        for name, table in operator.tables().items():
            if name in self.dumps:
                table.apply(self.dumps[name])
        if self.meta is not None:
            operator.set_meta(self.meta)
        found: list[Batch] = []

        def emit(tag: str | None, batch: Batch) -> None:
            found.append(batch)

        time = StepTime(self.watermark, now)
        if changes and self.is_combined:
            assert isinstance(operator, TakesCombined)
            combined = combiner_for(self.node, "agg").combine(batch_of(list(changes) * 8))
            assert combined is not None
            operator.process_combined(combined, time, emit)
        elif changes:
            operator.process(batch_of(list(changes)), time, emit)
        if to is not None:
            self.watermark = to
            operator.advance_watermark(StepTime(to, now), emit)
        operator.advance_clock(StepTime(self.watermark, now), emit)
        self.dumps = {name: table.dump() for name, table in operator.tables().items()}
        self.meta = operator.meta()
        return [row for batch in found for row in told(batch).to_pylist()]


def told(batch: Batch) -> pa.Table:
    """The rows of a batch, with what they do where it is a changelog."""
    if batch.kinds is None:
        return batch.table
    return batch.table.append_column(ROW_KIND_FIELD, kind_names(batch.kinds))


def start(row: dict[str, Any]) -> int:
    return int(row["window_start"].timestamp() * 1000)


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows as tuples, with the window as its start."""
    return [
        tuple(start(row) if n == "window_start" else value for n, value in row.items() if n != "window_end")
        for row in rows
    ]


def test_a_window_has_the_rows_that_are_left() -> None:
    job = Job(node_of(hw.tumbling("10 ms"), n=hw.count(), top=hw.max("v")))
    assert job.run(("+I", "a", 5, "x", 1), ("+I", "a", 3, "x", 2), ("+I", "b", 1, "x", 2)) == []
    assert job.run(("-U", "a", 5, "x", 1), ("+U", "a", 4, "x", 1), ("-D", "b", 1, "x", 2)) == []
    assert shown(job.run(to=9)) == [("a", 0, 2, 4)]
    assert job.run(("-D", "a", 4, "x", 1)) == []


def test_a_result_whose_window_is_empty_again_is_deleted() -> None:
    job = Job(node_of(hw.tumbling("10 ms"), "retracting", n=hw.count(), top=hw.max("v")))
    assert job.run(("+I", "a", 5, "x", 1), ("+I", "b", 1, "x", 2), ("-D", "b", 1, "x", 2)) == []
    assert shown(job.run(to=9)) == [("a", 0, 1, 5, "+I")]
    assert shown(job.run(("+I", "a", 7, "x", 1))) == [("a", 0, 1, 5, "-U"), ("a", 0, 2, 7, "+U")]
    assert shown(job.run(("-D", "a", 5, "x", 1))) == [("a", 0, 2, 7, "-U"), ("a", 0, 1, 7, "+U")]
    assert shown(job.run(("-D", "a", 7, "x", 1))) == [("a", 0, 1, 7, "-D")]
    assert shown(job.run(("+I", "b", 1, "x", 2), ("-D", "b", 1, "x", 2))) == [
        ("b", 0, 1, 1, "+I"),
        ("b", 0, 1, 1, "-D"),
    ]
    assert shown(job.run(("+I", "a", 2, "x", 3))) == [("a", 0, 1, 2, "+I")]


def test_continuous_firings_take_back_what_they_said() -> None:
    node = node_of(hw.tumbling("30 ms"), "retracting", hw.triggers.continuous("10 ms"), n=hw.count())
    job = Job(node)
    assert shown(job.run(("+I", "a", 1, "x", 1), to=12)) == [("a", 0, 1, "+I")]
    assert shown(job.run(("-D", "a", 1, "x", 1), to=22)) == [("a", 0, 1, "-D")]
    assert job.run(to=30) == []


AGGREGATES = {
    "n": hw.count(),
    "total": hw.sum("v"),
    "low": hw.min("v"),
    "mean": hw.avg("v"),
    "spread": hw.var("v"),
    "kinds": hw.count_distinct("s"),
}
ORDERED = {**AGGREGATES, "first": hw.first("s"), "last": hw.last("s"), "all": hw.collect_list("s")}
WINDOWS = {
    "tumbling": hw.tumbling("10 ms"),
    "sliding": hw.sliding("20 ms", "10 ms"),
    "cumulate": hw.cumulate("5 ms", "10 ms"),
}


@st.composite
def epochs(draw: st.DrawFn) -> list[list[Change]]:
    # What is taken back is found by the columns that an aggregate reads, so of these each has a time of its own.
    values = st.sampled_from([(1, "x", 0), (2, "y", 4), (3, None, 7), (None, "z", 13), (1, "u", 18), (5, "w", 25)])
    row = st.tuples(st.sampled_from("ab"), values).map(lambda r: (r[0], *r[1]))
    there: list[Any] = []
    found: list[list[Change]] = []
    for _ in range(draw(st.integers(1, 4))):
        changes: list[Change] = []
        for _ in range(draw(st.integers(1, 6))):
            if there and draw(st.booleans()):
                changes.append(("-D", *there.pop(draw(st.integers(0, len(there) - 1)))))
            else:
                there.append(draw(row))
                changes.append(("+I", *there[-1]))
        found.append(changes)
    return found


def left(script: list[list[Change]]) -> list[Change]:
    """The rows that are left; of equal ones the first goes first."""
    rows: list[Any] = []
    for kind, *row in (change for changes in script for change in changes):
        rows.append(row) if kind == "+I" else rows.remove(row)
    return [("+I", *row) for row in rows]


@pytest.mark.parametrize("windows", sorted(WINDOWS))
@settings(max_examples=30, deadline=None)
@given(script=epochs())
def test_before_they_fire_windows_forget_what_is_taken_back(windows: str, script: list[list[Change]]) -> None:
    assigner = WINDOWS[windows]
    aggregates = ORDERED if windows == "tumbling" else AGGREGATES
    node = node_of(assigner, **aggregates)
    assert isinstance(operator_for(node, "agg", [SCHEMA], way=way_of(node)), SlicedWindowOperator)
    job, plain = Job(node), Job(node)
    for changes in script:
        assert job.run(*changes) == []
    plain.run(*left(script))
    assert by_window(job.run(to=MAX_TIMESTAMP - 1)) == by_window(plain.run(to=MAX_TIMESTAMP - 1))


def by_window(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize("windows", sorted(WINDOWS))
@settings(max_examples=30, deadline=None)
@given(script=epochs())
def test_rows_are_combined_with_their_signs(windows: str, script: list[list[Change]]) -> None:
    node = node_of(WINDOWS[windows], **AGGREGATES)
    job, plain = Job(node, is_combined=True), Job(node)
    for changes in script:
        job.run(*changes)
    plain.run(*left(script) * 8)
    assert by_window(job.run(to=MAX_TIMESTAMP - 1)) == by_window(plain.run(to=MAX_TIMESTAMP - 1))


@pytest.mark.parametrize("windows", sorted(WINDOWS))
@settings(max_examples=30, deadline=None)
@given(script=epochs())
def test_retracting_panes_add_up_to_the_rows_that_are_left(windows: str, script: list[list[Change]]) -> None:
    node = node_of(WINDOWS[windows], "retracting", **ORDERED)
    job, plain = Job(node), Job(node)
    results: Counter[str] = Counter()
    for number, changes in enumerate([*script, []]):
        for row in job.run(*changes, to=100 if not changes else 15 * (number + 1)):
            kind = row.pop("row_kind")
            results[repr(row)] += 1 if kind in ("+I", "+U") else -1
    plain.run(*left(script))
    wanted = [repr({name: value for name, value in row.items() if name != "row_kind"}) for row in plain.run(to=100)]
    assert sorted((+results).elements()) == sorted(wanted)
    assert min(results.values(), default=0) >= 0


def test_windows_that_cannot_take_rows_back_are_refused_when_the_graph_is_built() -> None:
    stream = rows(hw.Environment("windows", engine="local"))
    tens = stream.window(hw.tumbling("10 ms"))
    late = hw.OutputTag("late", SCHEMA)
    cases: list[tuple[str, Any]] = [
        ("session", lambda: stream.window(hw.session("10 ms")).agg(n=hw.count())),
        ("count", lambda: stream.window(hw.count(10)).agg(n=hw.count())),
        ("processing_time", lambda: stream.window(hw.processing_time(hw.tumbling("10 ms"))).agg(n=hw.count())),
        ("a trigger that is not", lambda: tens.trigger(hw.triggers.count(3)).agg(n=hw.count())),
        ("or an evictor", lambda: tens.evict(hw.evictors.count(3)).agg(n=hw.count())),
        ("empty or discarding panes", lambda: tens.panes("discarding").agg(n=hw.count())),
        ("empty or discarding panes", lambda: tens.panes("retracting", empty=True).agg(n=hw.count())),
        ("fire again, without panes", lambda: tens.allow_lateness("1 s").agg(n=hw.count())),
        ("fire again, without panes", lambda: tens.trigger(hw.triggers.continuous("2 ms")).agg(n=hw.count())),
        ("late rows as a side output", lambda: tens.late_to(late).agg(n=hw.count())),
        ("a function over the rows", lambda: tens.reduce(lambda a, b: a)),
    ]
    for fact, build in cases:
        with pytest.raises(hw.GraphError, match=fact):
            build()


def test_windows_over_rows_that_go_at_another_time_are_refused() -> None:
    env = hw.Environment("windows", engine="local")
    left, right = (env.from_rows([], SCHEMA, hw.Watermarks.monotonous("ts"), name=name) for name in "lr")
    pairs = left.join_regular(right, on="k", how="left").key_by("k")
    with pytest.raises(hw.GraphError, match="taken back with another time than they came with"):
        pairs.window(hw.tumbling("10 ms")).agg(n=hw.count())
