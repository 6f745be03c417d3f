"""What edges carry, who takes it, and what the planner puts in so that it fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.graph.changelog import ChangelogMode
from headwater.graph.nodes import Node
from headwater.plan.plan import plan_job

ROWS = "id long, k string, v long"
RETRACT, UPSERT = ChangelogMode.RETRACT, ChangelogMode.UPSERT


class Env:
    """Streams of all kinds in one environment."""

    def __init__(self) -> None:
        self.env = hw.Environment("changes", engine="local")
        times = hw.Watermarks.monotonous("id")
        self.rows = self.env.from_rows([(1, "a", 2)], ROWS, times, name="rows")
        changes = self.env.from_rows([(1, "a", 2, "+I")], f"{ROWS}, row_kind string", times, name="changes")
        self.retract = changes.as_changelog()
        self.upsert = self.env.from_rows([(1, "a", 2)], ROWS, times, name="upserts").as_changelog(key="id")

    def plan(self, stream: hw.Stream, sink: Any = None) -> list[Node]:
        """The steps of the plan of a job that ends in a sink."""
        stream.sink(sink or hw.connectors.memory(), name="out")
        return list(plan_job(self.env.graph, 1, 128).graph)


@pytest.fixture
def made() -> Env:
    return Env()


class Each(hw.ProcessFunction):
    def process(self, event: Any, ctx: Any) -> Any:
        yield event


class PerKey(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: Any) -> Any:
        yield event


class Both(hw.CoProcessFunction):
    def process_left(self, event: Any, ctx: Any) -> Any:
        yield event


async def ask(row: Any) -> Any:
    return row


REFUSED: dict[str, Callable[[Env, hw.Stream], Any]] = {
    "process": lambda e, s: s.process(Each(), s.schema),
    "keyed process": lambda e, s: s.key_by("k").process(PerKey(), s.schema),
    "connect": lambda e, s: e.rows.connect(s).process(Both(), s.schema),
    "map_batches": lambda e, s: s.map_batches(lambda table: table),
    "map_async": lambda e, s: s.map_async(ask),
    "a function that looks up": lambda e, s: s.lookup_join(lambda keys: {}, on="k", schema="w long"),
    "interval_join": lambda e, s: e.rows.interval_join(s, ("0 s", "1 s"), on="k"),
    "window join": lambda e, s: e.rows.join(s).where("k").equal_to("k").window(hw.tumbling("1 s")).apply(),
    "temporal_join on the left": lambda e, s: s.temporal_join(e.rows, on="k"),
    "rebalance": lambda e, s: s.rebalance(),
    "deduplicate": lambda e, s: s.deduplicate("k"),
    "reduce": lambda e, s: s.key_by("k").reduce(max),
}


@pytest.mark.parametrize("kind", ["retract", "upsert"])
@pytest.mark.parametrize("step", REFUSED)
def test_a_step_that_would_be_wrong_over_a_changelog_is_refused_with_the_way_out(
    made: Env, step: str, kind: str
) -> None:
    with pytest.raises(
        hw.GraphError, match=rf"takes rows that are only added; got a changelog \({kind}.*with_row_kind"
    ):
        REFUSED[step](made, getattr(made, kind))


@pytest.mark.parametrize("step", sorted(set(REFUSED) - {"temporal_join on the left", "interval_join"}))
def test_changes_as_rows_go_everywhere(made: Env, step: str) -> None:
    told = made.retract.with_row_kind()
    assert told.changelog.is_append_only
    REFUSED[step](made, told)


def test_sinks_that_only_add_rows_are_refused(made: Env, tmp_path: Any) -> None:
    files = hw.connectors.files(tmp_path)
    with pytest.raises(
        hw.GraphError, match=r"'out' only adds rows \(.*\); got 'a changelog \(retract\)'.*with_row_kind"
    ):
        made.retract.sink(files, name="out")
    made.retract.with_row_kind().sink(files, name="out")


def test_a_column_alone_is_no_changelog(made: Env) -> None:
    named = made.rows.select("id", "k", "'+I' as row_kind")
    assert named.changelog.is_append_only
    with pytest.raises(hw.GraphError, match=r"does not read a column 'row_kind' as what rows do.*as_changelog"):
        made.rows.join_regular(named, on="k")
    with pytest.raises(hw.GraphError, match="needs to know what rows do"):
        made.rows.as_changelog()
    with pytest.raises(hw.SchemaError, match="no field 'nothing'"):
        made.rows.as_changelog(key="nothing")
    with pytest.raises(hw.GraphError, match="shows what rows do in a column 'row_kind'"):
        named.with_row_kind()


def test_rows_put_aside_would_lose_what_they_do(made: Env) -> None:
    tag = hw.OutputTag("failed", f"{ROWS}, error string")
    with pytest.raises(hw.GraphError, match="cannot put rows of a changelog aside"):
        made.retract.map(lambda row: row, failed_to=tag)


GIVEN: dict[str, tuple[Callable[[Env], hw.Stream], str]] = {
    "select keeps the key": (lambda e: e.upsert.select("id", "v * 2 as v"), "upsert by id"),
    "select drops the key": (lambda e: e.upsert.select("k", "v"), "retract"),
    "select renames the key": (lambda e: e.upsert.select("v as id"), "retract"),
    "select all": (lambda e: e.upsert.select("*", "v + 1 as w"), "upsert by id"),
    "where": (lambda e: e.upsert.where("v > 1"), "retract"),
    "map": (lambda e: e.retract.map(lambda row: row), "retract"),
    "lookup in a table": (
        lambda e: e.retract.lookup_join(pa.table({"k": ["a"], "w": [1]}), on="k"),
        "retract",
    ),
    "union": (lambda e: e.rows.union(e.upsert), "retract"),
    "agg of rows": (lambda e: e.rows.key_by("k").agg(n=hw.count()), "append-only"),
    "agg of changes": (lambda e: e.retract.key_by("k").agg(n=hw.count()), "upsert by k"),
    "agg by a function": (
        lambda e: e.retract.key_by(lambda row: row.v, type="long").agg(n=hw.count()),
        "upsert by key",
    ),
    "inner join of rows": (lambda e: e.rows.join_regular(e.rows, on="k"), "append-only"),
    "outer join of rows": (lambda e: e.rows.join_regular(e.rows, on="k", how="left"), "retract"),
    "inner join of changes": (lambda e: e.rows.join_regular(e.upsert, on="k"), "retract"),
    "temporal join": (lambda e: e.rows.temporal_join(e.retract, on="k"), "append-only"),
    "retracting panes": (
        lambda e: e.rows.key_by("k").window(hw.tumbling("1 s")).panes("retracting").agg(n=hw.count()),
        "retract",
    ),
}


@pytest.mark.parametrize("what", GIVEN)
def test_a_step_says_what_it_gives(made: Env, what: str) -> None:
    build, given = GIVEN[what]
    stream = build(made)
    assert stream.changelog.describe() == given
    made.plan(stream)


def operations(nodes: list[Node]) -> list[str]:
    return [node.operation for node in nodes if not node.is_source]


def test_upserts_reach_who_is_content_with_them_as_they_are(made: Env) -> None:
    nodes = made.plan(made.upsert.select("id", "v"))
    assert operations(nodes) == ["as_changelog", "as_changelog", "select", "with_row_kind", "sink"]


def test_upserts_are_completed_once_for_all_who_must_know_what_goes(made: Env) -> None:
    made.upsert.where("v > 1").sink(hw.connectors.memory(), name="large")
    nodes = made.plan(made.upsert.key_by("k").agg(n=hw.count()))
    found = operations(nodes)
    assert found.count("normalize") == 1
    normalized = next(node for node in nodes if node.operation == "normalize")
    assert normalized.uid == "as_changelog.normalized"
    readers = [node.operation for node in nodes if any(edge.source == normalized.id for edge in node.inputs)]
    assert readers == ["where", "running"]


def test_an_aggregate_tells_what_it_changes_only_where_somebody_must_know(made: Env) -> None:
    totals = made.retract.key_by("k").agg(n=hw.count()).with_uid("totals")
    by_count = totals.select("k", "n").key_by("n").agg(keys=hw.count()).with_uid("by_count")
    modes = {node.uid: node.changelog.mode for node in made.plan(by_count) if node.operation == "running"}
    assert modes == {"totals": RETRACT, "by_count": UPSERT}
    text = made.env.explain()
    assert "running totals by key_by(k); gives a changelog (retract), state in memory" in text
    assert "running by_count by key_by(n); gives a changelog (upsert by n), state in memory" in text


def test_planning_what_is_planned_puts_in_nothing_more(made: Env) -> None:
    made.upsert.where("v > 1").sink(hw.connectors.memory(), name="out")
    once = plan_job(made.env.graph, 1, 128)
    again = plan_job(once.graph, 3, 128)
    assert [node.uid for node in again.graph] == [node.uid for node in once.graph]
    assert once.kept_by_step() == again.kept_by_step()


def test_a_sink_that_upserts_by_another_key_must_know_what_goes(made: Env) -> None:
    class Table(hw.connectors.Sink):
        changes = hw.connectors.Changes.APPLIED
        upsert_key = ("k",)

        def describe(self) -> str:
            return "a table"

        def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
            """Nothing to open."""

        def publish(self, epoch: int, files: list[Any]) -> None:
            """Nothing to publish."""

    assert "normalize" in operations(made.plan(made.upsert, Table()))
    other = Env()
    by_k = other.env.from_rows([], ROWS, name="by_k").as_changelog(key="k").with_uid("by_key")
    assert "normalize" not in operations(other.plan(by_k, Table()))


def test_versions_are_by_the_key_they_are_joined_by(made: Env) -> None:
    with pytest.raises(hw.GraphError, match=r"one version at a time.*a changelog by id, joined by k"):
        made.rows.temporal_join(made.upsert, on="k")
    made.rows.temporal_join(made.upsert, on="id")


def test_the_graph_tells_what_a_step_gives(made: Env) -> None:
    made.upsert.where("v > 1").sink(hw.connectors.memory())
    text = made.env.describe()
    assert "as_changelog as_changelog <- upserts : id bigint, k string, v bigint (upsert by id)" in text
    assert "(retract)" in text
    assert "normalize as_changelog.normalized by key_by(id)" in made.env.explain()
