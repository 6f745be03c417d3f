"""Nodes are made without streams: from flows and settings, checked when made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.memory import MemorySink, RowsSource
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BIGINT, BOOLEAN, STRING
from headwater.data.schema import Schema
from headwater.graph.changelog import Changelog, ChangelogMode
from headwater.graph.connected import Broadcast, Connected
from headwater.graph.describe import describe
from headwater.graph.edges import GLOBAL, NO_KEY, REBALANCE, Key
from headwater.graph.flow import Flow, joined_on
from headwater.graph.graph import Graph
from headwater.graph.meeting import group_in_windows, join_in_windows
from headwater.graph.nodes import (
    AsChangelogNode,
    AssignWatermarksNode,
    BroadcastProcessNode,
    CallNode,
    ComputeNode,
    CoProcessNode,
    DeduplicateNode,
    DelayWatermarksNode,
    DistinctNode,
    FilterNode,
    FlatMapNode,
    IntervalJoinNode,
    KeepFirstNode,
    KeepLastNode,
    KeyedProcessNode,
    LookupJoinNode,
    MapAsyncNode,
    MapBatchesNode,
    MapNode,
    Node,
    NormalizeNode,
    OverAggregateNode,
    ProcessNode,
    ReduceNode,
    RegularJoinNode,
    RunningNode,
    SelectNode,
    SessionNode,
    SinkNode,
    SourceNode,
    StatefulProcessNode,
    TemporalJoinNode,
    TopNNode,
    WhereNode,
    WindowJoinNode,
    WindowNode,
    WindowTopNNode,
    WithRowKindNode,
)
from headwater.graph.nodes.calls import ColumnCall
from headwater.graph.nodes.core import NOWHERE
from headwater.graph.nodes.over import Frame, Lag, Numbering
from headwater.graph.nodes.process import process_node
from headwater.graph.windowed import Panes, Windowed, WindowedPair
from headwater.local.cluster import LocalCluster
from headwater.plan.plan import plan_job

ROWS = Schema.of("k string, n bigint, at bigint")
TENS = hw.tumbling("10 ms")
RULES = hw.MapState("rules", "string", "bigint")
LATE = hw.OutputTag("late", ROWS)
OF_N = {"total": hw.sum("n")}
PLACES = pa.table({"k": ["a"], "place": ["here"]})


class Plain(hw.ProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> list[Any]:
        return [event]


class Held(hw.ProcessFunction):
    held = hw.OperatorListState("bigint")


class PerKey(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint")


class Both(hw.CoProcessFunction):
    total = hw.ValueState("bigint")


class Beside(hw.BroadcastFunction):
    pass


class PerWindow(hw.ProcessWindowFunction):
    seen = hw.ValueState("bigint")


class Largest(hw.AggregateFunction[Any, int, int]):
    def create(self) -> int:
        return 0


async def ask(row: Any) -> Any:
    return row


def source(name: str = "rows", *, is_live: bool = False) -> SourceNode:
    rows = RowsSource([[]], ROWS)
    rows.bounded = not is_live
    return SourceNode.of(
        source=rows, schema=ROWS, watermarks=None if is_live else hw.Watermarks.monotonous("at"), name=name
    )


class Flows:
    """A graph with two sources, and what they give: as it is, and by key."""

    def __init__(self) -> None:
        self.graph = Graph("nodes")
        self.rows, self.others = self.graph.add(source("left")), self.graph.add(source("right"))
        self.keyed, self.others_keyed = (flow.keyed(Key.of(ROWS, ("k",))) for flow in (self.rows, self.others))
        self.windowed = Windowed(flow=self.keyed, assigner=TENS)
        self.pair = WindowedPair(left=self.keyed, right=self.others_keyed, assigner=TENS)


@pytest.fixture
def flows() -> Flows:
    return Flows()


MADE: dict[type[Node], list[Callable[[Flows], Node]]] = {
    SourceNode: [lambda f: source("third")],
    SinkNode: [lambda f: SinkNode.of(f.rows, sink=MemorySink())],
    MapNode: [lambda f: MapNode.of(f.rows, function=len, schema="n int")],
    FlatMapNode: [lambda f: FlatMapNode.of(f.rows, function=len)],
    FilterNode: [lambda f: FilterNode.of(f.rows, function=len)],
    ProcessNode: [
        lambda f: ProcessNode.of(f.rows, function=Plain(), schema="n int"),
        lambda f: process_node(f.keyed, function=Plain(), schema="n int"),
    ],
    MapAsyncNode: [lambda f: MapAsyncNode.of(f.rows, function=ask, timeout="1 s", timeout_to=LATE)],
    CallNode: [
        lambda f: CallNode.of(f.rows, calls=[ColumnCall("twice", lambda n: 2 * n, ("n",), pa.int64())]),
    ],
    ComputeNode: [
        lambda f: ComputeNode.of(f.rows, columns={"k": Term(STRING, '"k"')}),
        lambda f: ComputeNode.of(
            f.rows, columns={"m": Term(BIGINT, '("n" + 1)')}, condition=Term(BOOLEAN, '("n" > 1)')
        ),
    ],
    SelectNode: [
        lambda f: SelectNode.of(f.rows, expressions=["k", "n * 2 as twice"]),
        lambda f: SelectNode.of_columns(f.rows, {"twice": "n * 2"}),
        lambda f: SelectNode.of_dropped(f.rows, ["n"]),
        lambda f: SelectNode.of_renamed(f.rows, {"n": "m"}),
    ],
    WhereNode: [lambda f: WhereNode.of(f.rows, expression="n > 1")],
    MapBatchesNode: [lambda f: MapBatchesNode.of(f.rows, function=len, timestamp="at")],
    LookupJoinNode: [lambda f: LookupJoinNode.of(f.rows, table=PLACES, on="k")],
    StatefulProcessNode: [
        lambda f: StatefulProcessNode.of(f.rows, function=Held(), schema="n int"),
        lambda f: process_node(f.rows, function=Held(), schema="n int"),
    ],
    KeyedProcessNode: [
        lambda f: KeyedProcessNode.of(f.keyed, function=PerKey(), schema="n int"),
        lambda f: process_node(f.keyed, function=PerKey(), schema="n int"),
    ],
    CoProcessNode: [
        lambda f: CoProcessNode.of(Connected(f.keyed, f.others_keyed), function=Both(), schema="n int"),
    ],
    BroadcastProcessNode: [
        lambda f: BroadcastProcessNode.of(
            f.rows, Broadcast(f.others.everywhere(), (RULES,)), function=Beside(), schema="n int"
        )
    ],
    DelayWatermarksNode: [lambda f: DelayWatermarksNode.of(f.rows, column="at", delay="5 s")],
    AssignWatermarksNode: [lambda f: AssignWatermarksNode.of(f.rows, watermarks=hw.Watermarks.monotonous("at"))],
    AsChangelogNode: [lambda f: AsChangelogNode.of(f.rows, key="k")],
    WithRowKindNode: [lambda f: WithRowKindNode.of(f.rows)],
    NormalizeNode: [lambda f: NormalizeNode.of(dataclasses.replace(f.rows, changelog=BY_KEY), name="whole")],
    RunningNode: [
        lambda f: RunningNode.of(f.keyed, aggregates={"total": hw.sum("n")}),
        lambda f: RunningNode.of(f.rows, aggregates={"total": hw.sum("n")}, updates=True),
        lambda f: RunningNode.of(dataclasses.replace(f.keyed, changelog=GOES), aggregates={}, updates=True),
    ],
    ReduceNode: [lambda f: ReduceNode.of(f.keyed, function=max)],
    OverAggregateNode: [
        lambda f: OverAggregateNode.of(
            f.rows,
            functions={"total": hw.sum("n"), "nth": Numbering("rank"), "before": Lag("n", 2, "at")},
            partition_by=["k"],
            frame=Frame("rows", 2),
        ),
        lambda f: OverAggregateNode.of(f.rows, functions={"total": hw.sum("n")}, time="processing"),
    ],
    DeduplicateNode: [lambda f: DeduplicateNode.of(f.rows, by=["k", "n"], ttl="1 h")],
    DistinctNode: [lambda f: DistinctNode.of(f.rows, by=["k", "n"], ttl="1 h", since_first=True)],
    KeepFirstNode: [lambda f: KeepFirstNode.of(f.rows, by="k")],
    KeepLastNode: [lambda f: KeepLastNode.of(f.rows, by=["k", "n"])],
    TopNNode: [
        lambda f: TopNNode.of(f.keyed, n=3, by=["n", "at"], descending=[True, False]),
        lambda f: TopNNode.of(f.rows, n=3, by="n", partition_by=(), rank=None),
    ],
    WindowTopNNode: [
        lambda f: WindowTopNNode.of(
            f.rows, window_end="at", n=3, first=2, by=["n", "k"], partition_by=["k"], nulls_first=[True, False]
        ),
    ],
    IntervalJoinNode: [
        lambda f: IntervalJoinNode.of(f.keyed, f.others_keyed, between=("0 s", "5 s"), unmatched_left=LATE)
    ],
    SessionNode: [
        lambda f: SessionNode.of(f.rows, gap="5 s", partition_by=["k"], aggregates={"total": hw.sum("n")}),
        lambda f: SessionNode.of(f.rows, gap="5 s", time="processing", bounds=("from", "to")),
    ],
    RegularJoinNode: [lambda f: RegularJoinNode.of(f.keyed, f.others_keyed, how="left")],
    TemporalJoinNode: [lambda f: TemporalJoinNode.of(f.keyed, f.others_keyed)],
    WindowNode: [
        lambda f: WindowNode.of_aggregates(f.windowed, aggregates={"total": hw.sum("n")}),
        lambda f: WindowNode.of_reduce(f.windowed, function=max),
        lambda f: WindowNode.of_aggregate(f.windowed, function=Largest(), accumulator="bigint", schema="n bigint"),
        lambda f: WindowNode.of_process(f.windowed, function=PerWindow(), schema="n bigint"),
    ],
    WindowJoinNode: [lambda f: WindowJoinNode.of(f.pair)],
}
GOES = Changelog(ChangelogMode.RETRACT)
BY_KEY = Changelog(ChangelogMode.UPSERT, ("k",))
CASES = [(cls, make) for cls, makes in MADE.items() for make in makes]


def kinds(cls: type[Node] = Node) -> Iterator[type[Node]]:
    if cls.operation:
        yield cls
    for sub in cls.__subclasses__():
        yield from kinds(sub)


def test_every_node_is_made_here() -> None:
    assert set(MADE) == set(kinds())


@pytest.mark.parametrize(("cls", "make"), CASES, ids=lambda case: getattr(case, "operation", ""))
def test_a_graph_takes_a_node_that_was_made_without_it(
    flows: Flows, cls: type[Node], make: Callable[[Flows], Node]
) -> None:
    node = make(flows)
    assert type(node) is cls
    assert node.id == NOWHERE
    flow = flows.graph.add(node)
    assert flow.origin == 2
    assert flow.schema == node.schema
    assert flows.graph.node(2) == dataclasses.replace(node, id=2)
    if not node.is_sink:
        flows.graph.add(SinkNode.of(flow, sink=MemorySink(), name="out"))
    LocalCluster(plan_job(flows.graph, 2, 128)).close()
    assert f" 2 {cls.operation} " in describe(flows.graph)


@pytest.mark.parametrize("cls", [*kinds()])
def test_a_node_has_only_settings_with_a_name_and_none_half_made(cls: type[Node]) -> None:
    assert all(field.kw_only for field in dataclasses.fields(cls))
    with pytest.raises(TypeError, match="missing"):
        cls()


KEPT: dict[type[Node], dict[str, Any]] = {
    StatefulProcessNode: {"states": {"held": ["operator_list", "bigint", "bigint"]}},
    KeyedProcessNode: {"key": "k: string", "states": {"total": ["value", "bigint"]}},
    CoProcessNode: {"key": "k: string", "right key": "k", "states": {"total": ["value", "bigint"]}},
    BroadcastProcessNode: {
        "key": ": boolean",
        "states": {},
        "broadcast states": {"rules": ["map", "string", "bigint"]},
    },
    NormalizeNode: {"key": "k: string", "rows": "k string, n bigint, at bigint"},
    ReduceNode: {"key": "k: string", "rows": "k string, n bigint, at bigint"},
    OverAggregateNode: {
        "key": "k: string",
        "rows": "k string, n bigint, at bigint",
        "time": "event",
        "frame": "rows 2 preceding",
        "functions": {"total": "hw.sum('n')", "nth": "rank()", "before": "lag('n', 2, 'at')"},
    },
    DeduplicateNode: {
        "key": "k, n: struct<k:string,n:bigint>",
        "ttls": {"known_until": "1 h after the row that went on"},
    },
    TopNNode: {
        "key": "k: string",
        "rows": "k string, n bigint, at bigint",
        "n": 3,
        "order": {"n": True, "at": False},
    },
    DistinctNode: {
        "key": "k, n: struct<k:string,n:bigint>",
        "forgets": True,
        "ttls": {"seen": "1 h of processing time after its first row"},
    },
    KeepFirstNode: {"key": "k: string", "rows": "k string, n bigint, at bigint"},
    KeepLastNode: {"key": "k, n: struct<k:string,n:bigint>", "rows": "k string, n bigint, at bigint"},
    WindowTopNNode: {
        "key": "at, k: struct<at:bigint,k:string>",
        "rows": "k string, n bigint, at bigint",
        "window end": "at",
        "n": 3,
        "order": {"n": True, "k": True},
        "first": 2,
        "nulls flipped": ["n"],
    },
    RunningNode: {"key": "k: string", "aggregates": {"total": "hw.sum('n')"}, "rows": "k string, n bigint, at bigint"},
    SessionNode: {
        "key": "k: string",
        "rows": "k string, n bigint, at bigint",
        "gap ms": 5000,
        "time": "event",
        "aggregates": {"total": "hw.sum('n')"},
    },
    IntervalJoinNode: {
        "key": "k: string",
        "right key": "k",
        "left rows": "k string, n bigint, at bigint",
        "right rows": "k string, n bigint, at bigint",
        "between": [0, 5000],
        "tells unmatched rows": True,
    },
    RegularJoinNode: {
        "key": "k: string",
        "right key": "k",
        "left rows": "k string, n bigint, at bigint",
        "right rows": "k string, n bigint, at bigint",
        "how": "left",
    },
    TemporalJoinNode: {
        "key": "k: string",
        "right key": "k",
        "left rows": "k string, n bigint, at bigint",
        "right rows": "k string, n bigint, at bigint",
        "how": "inner",
    },
    WindowNode: {
        "key": "k: string",
        "windows": "tumbling(10 ms)",
        "trigger": "EventTimeTrigger()",
        "rows": "k string, n bigint, at bigint",
        "aggregates": {"total": "hw.sum('n')"},
        "accumulator": None,
        "keeps rows": False,
        "panes": ["accumulating", False, False],
        "states": {},
    },
    WindowJoinNode: {
        "key": "k: string",
        "right key": "k",
        "left rows": "k string, n bigint, at bigint",
        "right rows": "k string, n bigint, at bigint",
        "windows": "tumbling(10 ms)",
    },
}
"""What the first of each kind keeps, in the words that are stored: as long as programs are to go on from what they stored."""


def test_every_kind_that_keeps_something_says_what_in_words_that_stay(flows: Flows) -> None:
    assert {cls for cls in kinds() if cls.is_stateful} == set(KEPT)
    found = {cls.operation: json.loads(json.dumps(MADE[cls][0](flows).kept())) for cls in KEPT}
    assert found == {cls.operation: words for cls, words in KEPT.items()}


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda f: SourceNode.of(source=[], schema=ROWS), "'source' needs a source"),
        (lambda f: SinkNode.of(f.rows, sink=print), "'sink' needs a sink"),
        (lambda f: MapNode.of(f.rows, function="n"), "'map' needs a function; got 'n'"),
        (lambda f: MapNode.of(f.rows, function=len, schema="n intt"), "at position 2"),
        (lambda f: FlatMapNode.of(f.rows, function=len, failed_to=LATE), "in one more column, the error to failed_to"),
        (lambda f: FilterNode.of(f.rows, function=None), "'filter' needs a function"),
        (lambda f: ProcessNode.of(f.rows, function=PerKey(), schema="n int"), r"needs a hw\.ProcessFunction"),
        (lambda f: ProcessNode.of(f.rows, function=Held(), schema="n int"), "'held' keeps nothing as a stateless step"),
        (lambda f: MapAsyncNode.of(f.rows, function=len), "needs a coroutine function"),
        (lambda f: MapAsyncNode.of(f.rows, function=ask, timeout_to=LATE), "has timeout_to but no timeout"),
        (lambda f: SelectNode.of(f.rows, expressions=["m"]), "m"),
        (lambda f: WhereNode.of(f.rows, expression="m > 1"), "m"),
        (lambda f: MapBatchesNode.of(f.rows, function=len, timestamp="k"), "for event time"),
        (lambda f: LookupJoinNode.of(f.rows, table=5, on="k"), "needs a pyarrow Table"),
        (lambda f: StatefulProcessNode.of(f.rows, function=PerKey(), schema="n int"), r"needs a hw\.ProcessFunction"),
        (lambda f: KeyedProcessNode.of(f.rows, function=PerKey(), schema="n int"), "'per_key' needs a keyed stream"),
        (lambda f: process_node(f.rows, function=PerKey(), schema="n int"), "'per_key' needs a keyed stream"),
        (lambda f: process_node(f.keyed, function=PerKey(), schema="n int", failed_to=LATE), "cannot be taken back"),
        (lambda f: process_node(f.rows, function=len, schema="n int"), r"needs a hw\.ProcessFunction \(hw\.Keyed"),
        (lambda f: process_node(f.keyed, function=len, schema="n int"), r"needs a hw\.KeyedProcessFunction"),
        (lambda f: Connected(f.keyed, f.others), "needs both streams keyed or neither"),
        (
            lambda f: CoProcessNode.of(Connected(f.rows, f.others), function=Both(), schema="n int"),
            "needs keyed streams",
        ),
        (lambda f: Broadcast(f.others, (hw.MapState("string", "bigint"),)), "needs states with a name"),
        (
            lambda f: BroadcastProcessNode.of(f.keyed, Broadcast(f.others, ()), function=Beside(), schema="n int"),
            r"needs a hw\.KeyedBroadcastFunction on a keyed stream",
        ),
        (lambda f: RunningNode.of(f.rows, aggregates={"total": hw.sum("n")}), "'agg' needs a keyed stream"),
        (lambda f: RunningNode.of(f.keyed, aggregates={}), "'agg' needs an aggregate"),
        (lambda f: OverAggregateNode.of(f.rows, functions={}), "'over_aggregate' needs a function"),
        (lambda f: OverAggregateNode.of(f.rows, functions=OF_N, time="row"), "orders rows by time='event' or"),
        (lambda f: OverAggregateNode.of(f.rows, functions={"k": hw.count()}), "shows results in new columns; got 'k'"),
        (lambda f: OverAggregateNode.of(f.rows, functions=OF_N, partition_by=["m"]), "there is no field 'm'"),
        (lambda f: OverAggregateNode.of(f.rows, functions=OF_N, frame=Frame("groups")), "needs a frame by 'rows' or"),
        (lambda f: OverAggregateNode.of(f.rows, functions=OF_N, frame=Frame("rows", -1)), "needs a frame by 'rows' or"),
        (lambda f: OverAggregateNode.of(f.rows, functions={"x": Numbering("ntile")}), "numbers rows by row_number"),
        (lambda f: OverAggregateNode.of(f.rows, functions={"x": Lag("n", -1)}), "looks back in time"),
        (
            lambda f: OverAggregateNode.of(f.rows, functions={"x": Lag("n", 1, "k")}),
            "needs a default of the type of 'n'",
        ),
        (lambda f: RunningNode.of(f.keyed, aggregates={}, updates=True), "'agg' needs an aggregate"),
        (lambda f: RunningNode.of(f.keyed, aggregates=OF_N, ttl="0 s"), "'agg' needs a ttl of more than nothing"),
        (lambda f: KeepLastNode.of(f.rows, by="k", ttl="0 s"), "'keep_last' needs a ttl of more than nothing"),
        (lambda f: TopNNode.of(f.keyed, n=3, by="n", ttl="0 s"), "'top_n' needs a ttl of more than nothing"),
        (lambda f: ReduceNode.of(f.rows, function=max), "'reduce' needs a keyed stream"),
        (lambda f: ReduceNode.of(f.keyed, function="n"), "'reduce' needs a function"),
        (lambda f: DeduplicateNode.of(f.rows, by=[]), "'deduplicate' needs columns to tell rows by"),
        (lambda f: DeduplicateNode.of(f.rows, by="m"), "there is no field 'm'"),
        (lambda f: DeduplicateNode.of(f.rows, by="k", ttl="0 s"), "needs a ttl of more than nothing"),
        (lambda f: TopNNode.of(f.rows, n=3, by="n"), "'top_n' needs a keyed stream"),
        (lambda f: TopNNode.of(f.keyed, n=0, by="n"), "needs a number of rows of 1 or more; got 0"),
        (lambda f: TopNNode.of(f.keyed, n=3, by="m"), "there is no field 'm'"),
        (lambda f: TopNNode.of(f.keyed, n=3, by="n", rank="at"), "shows ranks in a new column; got 'at'"),
        (lambda f: TopNNode.of(f.keyed, n=3, by=["n", "at"], descending=[True]), "for each whether it is descending"),
        (lambda f: TopNNode.of(f.keyed, n=3, by="n", first=4), "gives ranks from 1 or more to 3; got 4"),
        (
            lambda f: TopNNode.of(f.keyed, n=3, by="n", nulls_first=[True] * 2),
            "for each column whether nulls come first",
        ),
        (lambda f: SessionNode.of(f.rows, gap="0 s"), "'session' needs a gap between sessions; got '0 ms'"),
        (lambda f: SessionNode.of(f.rows, gap="1 s", time="row"), "takes sessions in time='event' or 'processing'"),
        (lambda f: SessionNode.of(f.rows, gap="1 s", bounds=("k", "to")), "shows windows in new columns; got 'k'"),
        (lambda f: SessionNode.of(f.rows, gap="1 s", partition_by=["m"]), "there is no field 'm'"),
        (lambda f: WindowTopNNode.of(f.rows, window_end="k", n=3, by="n"), "takes event time from a timestamp"),
        (lambda f: KeepFirstNode.of(f.rows, by=[]), "'keep_first' needs columns to tell rows by"),
        (
            lambda f: TopNNode.of(f.rows.keyed(Key.of(ROWS, (len,), "bigint")), n=3, by="n"),
            r"so the key must be columns; got 'len\(\)'; compute the key as a column first",
        ),
        (lambda f: IntervalJoinNode.of(f.rows, f.others, between=("0 s", "1 s")), "needs keyed streams"),
        (lambda f: IntervalJoinNode.of(f.keyed, f.others_keyed, between=("1 s", "0 s")), "swap or widen them"),
        (lambda f: RegularJoinNode.of(f.keyed, f.others_keyed, how="outer"), "joins by how="),
        (lambda f: TemporalJoinNode.of(f.keyed, f.others_keyed, late=hw.OutputTag("l", "n int")), "needs for late"),
        (lambda f: Windowed(flow=f.rows, assigner=TENS), "'window' needs a keyed stream"),
        (lambda f: Windowed(flow=f.keyed, assigner="10 s"), "'window' needs windows"),
        (lambda f: Panes("all"), "'panes' needs one of"),
        (lambda f: WindowNode.of_reduce(f.windowed, function=None), "'reduce' needs a function of two rows"),
        (lambda f: WindowNode.of_aggregates(f.windowed, aggregates={"k": hw.count()}), "needs other names.*got 'k'"),
        (
            lambda f: WindowedPair(
                left=f.keyed, right=f.others_keyed, assigner=TENS, late_left=hw.OutputTag("l", "x int")
            ),
            "'late_left' needs a tag",
        ),
        (
            lambda f: WindowJoinNode.of(dataclasses.replace(f.pair, assigner=hw.session("1 s"))),
            "'window_join' makes pairs by columns in windows of few slices that fire at their end",
        ),
    ],
)
def test_a_node_that_makes_no_sense_is_not_made(flows: Flows, make: Any, problem: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=problem):
        make(flows)


def test_rows_of_two_flows_meet_in_windows_without_streams(flows: Flows) -> None:
    graph, by_element = flows.graph, dataclasses.replace(flows.pair, evictor=hw.evictors.count(1))
    assert graph.node(join_in_windows(graph, flows.pair).origin).operation == "window_join"
    assert graph.node(join_in_windows(graph, by_element).origin).operation == "window"
    groups = dataclasses.replace(flows.pair, meets="cogroup")
    grouped = group_in_windows(graph, groups, function=lambda left, right, ctx: [], schema="n int")
    assert graph.node(grouped.origin).name == "window_cogroup"
    with pytest.raises(hw.GraphError, match="'window_cogroup' needs a function of lefts, rights, ctx"):
        group_in_windows(graph, groups, function=5, schema="n int")  # type: ignore[arg-type]


def test_a_flow_has_a_key_only_where_its_rows_are_by_that_key(flows: Flows) -> None:
    assert flows.keyed.key.columns == ("k",)
    for moved in (flows.keyed.moved(REBALANCE), flows.keyed.in_place(), flows.keyed.union(flows.keyed)):
        assert moved.key == NO_KEY
    assert {edge.exchange for edge in flows.keyed.together().edges} == {GLOBAL}


def test_a_flow_tells_which_sources_above_have_no_event_time(flows: Flows) -> None:
    live = flows.graph.add(WhereNode.of(flows.graph.add(source("live", is_live=True)), expression="n > 1"))
    assert flows.rows.untimed == ()
    assert flows.rows.union(live, live).untimed == ("live",)
    left, right = joined_on(flows.rows, live, {"k": "k"}, "interval_join")
    with pytest.raises(hw.GraphError, match="source 'live' without watermarks on the right side"):
        IntervalJoinNode.of(left, right, between=("0 s", "1 s"))
    tag = hw.OutputTag("side", "n int")
    assert flows.graph.side_output(live, tag) == Flow(
        edges=(dataclasses.replace(live.edges[0], tag="side"),), schema=tag.schema, untimed=("live",)
    )
