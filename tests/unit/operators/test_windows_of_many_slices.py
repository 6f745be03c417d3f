"""Windows of many slices: they give what they give one by one, and cost what comes and goes, not what they hold."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from tests.parts.examples import examples
from tests.parts.work import calls_of

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.graph.nodes.windows import BY_RUNS, BY_SLICES
from headwater.operators.aggregation import Aggregation
from headwater.operators.contract import StepTime
from headwater.operators.registry import operator_for
from headwater.operators.window import slices, updates
from headwater.testing import Harness

SCHEMA = "k long, j string, v long"
Rows = list[tuple[int, str, int, int]]

ASSIGNERS = [
    hw.sliding("300 ms", "5 ms"),
    hw.sliding("36 ms", "4 ms", "-1 ms"),
    hw.sliding("300 ms", "9 ms"),
    hw.cumulate("2 ms", "300 ms"),
    hw.cumulate("2 ms", "34 ms"),
    hw.tumbling("20 ms"),
]
KEYS = [("k",), ("k", "j"), ()]


def window_node(assigner: hw.WindowAssigner, key: tuple[str, ...] = ("k",), lateness: str = "0 s") -> Any:
    def build(stream: Any) -> Any:
        keyed = stream.key_by(*key) if key else stream
        windows = keyed.window(assigner) if key else keyed.window_all(assigner)
        return windows.allow_lateness(lateness).agg(rows=hw.count(), total=hw.sum("v"), low=hw.min("v"))

    (entry,) = [entry for host in Harness(build, SCHEMA)._cluster.hosts.values() for entry in host._entries]
    return entry.node


class Run:
    """One operator, and what comes out of it."""

    def __init__(self, node: Any, way: str) -> None:
        self._node, self._way, self._now = node, way, MIN_TIMESTAMP
        self.operator: Any = self._made()
        self._standby: Any = self._made()
        self._out: list[Batch] = []

    def _made(self) -> Any:
        return operator_for(self._node, "step", [hw.Schema.of(SCHEMA)], way=self._way)

    def rows(self, rows: Rows) -> dict[Any, Any]:
        columns = list(zip(*rows, strict=True))
        table = pa.table({"k": pa.array(columns[0]), "j": pa.array(columns[1]), "v": pa.array(columns[2])})
        batch = Batch(table.cast(hw.Schema.of(SCHEMA).arrow), np.array(columns[3], np.int64))
        self.operator.process(batch, StepTime(self._now, 0), lambda _, out: self._out.append(out))
        return self._taken()

    def watermark(self, to: int) -> dict[Any, Any]:
        self._now = max(self._now, to)
        self.operator.advance_watermark(StepTime(self._now, 0), lambda _, out: self._out.append(out))
        return self._taken()

    def _taken(self) -> dict[Any, Any]:
        """The last result of each key and window. Another copy is told what has changed."""
        tables = self._standby.tables()
        for name, table in self.operator.tables().items():
            if (changes := table.changes()) is not None:
                tables[name].apply(changes)
        self._standby.set_meta(self.operator.meta())
        found = {}
        for batch in self._out:
            for row in batch.table.to_pylist():
                totals = [row.pop(name) for name in ("rows", "total", "low")]
                found[tuple(row.values())] = totals
        self._out = []
        return found

    def kept(self) -> int:
        """How much state there is."""
        for table in self.operator.tables().values():
            table.forget_changes()
        return sum(map(len, self.operator.tables().values()))

    def hand_over(self) -> None:
        """Go on in the other copy."""
        self.operator, self._standby = self._standby, self.operator

    def rebuild(self, way: str | None = None) -> None:
        """Go on in new copies, in another way perhaps."""
        before, self._way = self.operator, way or self._way
        self.operator, self._standby = self._made(), self._made()
        for copy in (self.operator, self._standby):
            for name, table in before.tables().items():
                if len(table):
                    copy.tables()[name].apply(table.dump())
            copy.set_meta(before.meta())


rows = st.tuples(st.integers(0, 4), st.sampled_from("ab"), st.integers(-9, 9), st.integers(0, 900))
scripts = st.lists(
    st.one_of(st.lists(rows, min_size=1, max_size=8), st.integers(0, 1_500), st.sampled_from(["rebuild", "hand over"])),
    max_size=6,
)


@examples(90)
@given(
    windows=st.sampled_from(ASSIGNERS),
    key=st.sampled_from(KEYS),
    lateness=st.sampled_from(["0 s", "40 ms", "3 s"]),
    script=scripts,
    is_indexed=st.booleans(),
)
def test_results_are_those_of_windows_one_by_one(
    windows: hw.WindowAssigner, key: tuple[str, ...], lateness: str, script: list[Any], is_indexed: bool
) -> None:
    node = window_node(windows, key, lateness)
    one, other = Run(node, BY_SLICES), Run(node, BY_RUNS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(updates, "_SMALL_ROWS", 0 if is_indexed else 512)
        patch.setattr(slices, "_MANY_TABLES", 3)
        patch.setattr(updates, "AT_ONCE", 7)
        for action in [*script, 5_000]:
            if isinstance(action, int):
                assert one.watermark(action) == other.watermark(action)
            elif isinstance(action, list):
                assert one.rows(action) == other.rows(action)
            else:
                one.rebuild() if action == "rebuild" else one.hand_over()
    assert one.kept() == 0


@examples(25)
@given(
    windows=st.sampled_from([hw.sliding("257 ms", "16 ms"), hw.cumulate("1 ms", "257 ms")]),
    key=st.sampled_from(KEYS),
    lateness=st.sampled_from(["0 s", "40 ms", "3 s"]),
    before=scripts,
    after=scripts,
)
@example(hw.sliding("257 ms", "16 ms"), ("k",), "0 s", [0], [[(0, "a", 0, 0)]])  # nothing is stored but how far it is
def test_windows_stored_one_by_one_go_on_by_slices(
    windows: hw.WindowAssigner, key: tuple[str, ...], lateness: str, before: list[Any], after: list[Any]
) -> None:
    node = window_node(windows, key, lateness)
    one, other = Run(node, BY_RUNS), Run(node, BY_RUNS)
    for number, script in enumerate((before, [*after, 5_000])):
        for action in script:
            if isinstance(action, int):
                assert one.watermark(action) == other.watermark(action)
            elif isinstance(action, list):
                assert one.rows(action) == other.rows(action)
            elif number:
                one.rebuild() if action == "rebuild" else one.hand_over()
        if not number:
            one.rebuild(BY_SLICES)
    assert one.kept() == 0


# -- work -----------------------------------------------------------------------------------------------------------


class Work:
    """Counts the functions that are called, and the accumulators that are merged."""

    merged = 0

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        known = Aggregation.merge

        def merge(aggregation: Aggregation, partials: pa.Table, *groups: Any) -> pa.Table:
            self.merged += len(partials)
            return known(aggregation, partials, *groups)

        monkeypatch.setattr(Aggregation, "merge", merge)

    def of(self, run: Any) -> tuple[int, int]:
        self.merged = 0
        return calls_of(run), self.merged


@pytest.mark.parametrize("windows", [lambda n: hw.sliding(f"{n} s", "1 s"), lambda n: hw.cumulate("1 s", f"{n} s")])
def test_a_window_merges_few_tables_however_many_slices_it_has(windows: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    costs = {}
    for count in (128, 1_024):
        run = Run(window_node(windows(count)), BY_SLICES)
        run.rows([(n % 10, "", 1, n * 100) for n in range(10 * count)])
        run.watermark(count * 1_000 - 2_001)
        costs[count] = work.of(lambda count=count, run=run: run.watermark(count * 1_000 - 1_001))
    (few_calls, few_merged), (many_calls, many_merged) = costs[128], costs[1_024]
    assert many_calls < 3 * few_calls
    assert many_merged < 3 * few_merged < 2_000  # the slices have 1,280 and 10,240


def test_late_rows_cost_the_windows_they_are_in(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    costs = {}
    for count in (32, 256):
        run = Run(window_node(hw.sliding(f"{count} s", "1 s"), lateness="2 h"), BY_SLICES)
        run.rows([(n % 50, "", 1, n * 100) for n in range(10 * count)])
        run.watermark(2 * count * 1_000)
        late = [(n, "", 1, n * count * 1_000 // 10) for n in range(10)]
        costs[count] = work.of(lambda run=run, late=late: run.rows(late))
    (few_calls, few_merged), (many_calls, many_merged) = costs[32], costs[256]
    assert many_calls < 16 * few_calls  # 8 times the windows
    assert many_merged < 16 * few_merged


def test_late_rows_of_a_large_window_cost_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    grouped = 0
    known = updates.group

    def group(columns: Any, rows: int, *above: Any) -> Any:
        nonlocal grouped
        grouped += rows
        return known(columns, rows, *above)

    monkeypatch.setattr(updates, "group", group)
    run = Run(window_node(hw.tumbling("1 min"), lateness="1 h"), BY_SLICES)
    run.rows([(n, "", 1, 0) for n in range(20_000)])
    run.watermark(60_000)
    for number in range(40):
        late = [(n + 100 * number, "", 1, 0) for n in range(10)]
        grouped = 0
        _, merged = work.of(lambda late=late: run.rows(late))
        assert merged < 2_000
        assert grouped < 4_000
    assert len(run.operator._slices.tables(0)) < 20
