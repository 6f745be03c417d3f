"""EXPLAIN before a query runs: what it keeps, until when, and what its changes are."""

from __future__ import annotations

import pytest

import headwater as hw
from headwater.graph.holdings import HOLDINGS, NEVER, holdings
from headwater.graph.nodes import (
    KeepFirstNode,
    KeepLastNode,
    Node,
    OverAggregateNode,
    RegularJoinNode,
    RunningNode,
    TopNNode,
)
from headwater.graph.nodes import __all__ as names
from headwater.graph.nodes.over import Frame


def explained(text: str, of: str) -> str:
    env = hw.Environment("explained", engine="local")
    clicks = env.from_rows([("s", 1, 0)], "session string, n int, ms long", hw.Watermarks.monotonous("ms"))
    env.create_view("clicks", clicks.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    return env.sql(text).explain(of)  # type: ignore[arg-type]


def test_a_group_for_each_session_is_told_to_grow_for_ever() -> None:
    told = explained("SELECT session, COUNT(*) AS c FROM clicks GROUP BY session", "state")
    assert "keeps one count" in told
    assert "per   session\n    until never" in told
    assert "way out: group by a window" in told
    assert told.endswith("grows for ever: query.aggregate")


def test_a_window_is_told_to_be_bounded_by_the_watermark() -> None:
    windows = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
    told = explained(f"SELECT session, COUNT(*) FROM {windows} GROUP BY session, window_start, window_end", "state")
    assert "until the watermark passes the end of the window" in told
    assert told.endswith("all of it is bounded")


def test_what_takes_rows_back_keeps_counted_values() -> None:
    inner = "SELECT session, SUM(n) AS s FROM clicks GROUP BY session"
    told = explained(f"SELECT MAX(s) FROM ({inner})", "state")
    assert "each different value of s with its count" in told


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("a.session = b.session", "keeps all left rows"),
        (
            "a.session = b.session AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '1' MINUTE",
            "until the watermark passes their time by 1 min",
        ),
    ],
)
def test_a_join_keeps_what_its_condition_bounds(condition: str, said: str) -> None:
    assert said in explained(f"SELECT a.n, b.n FROM clicks a JOIN clicks b ON {condition}", "state")


def test_changes_are_told_where_they_begin() -> None:
    told = explained("SELECT session, COUNT(*) AS c FROM clicks GROUP BY session", "changelog")
    assert "query.aggregate: upsert by session, changes begin here" in told


def test_a_query_without_state_says_so() -> None:
    assert explained("SELECT n FROM clicks", "state") == "job explained keeps no state"


def test_what_every_step_keeps_is_known() -> None:
    from headwater.graph import nodes

    kinds = [getattr(nodes, name) for name in names]
    stateful = {
        kind.operation for kind in kinds if isinstance(kind, type) and issubclass(kind, Node) and kind.is_stateful
    }
    assert stateful - {""} == set(HOLDINGS)


def test_state_that_is_forgotten_in_time_is_told_to_end() -> None:
    flow = hw.Environment("kept", engine="local").from_rows([], "k string, n long").key_by("k")._flow
    groups = RunningNode.of(flow, aggregates={"n": hw.count()}, updates=True, ttl="1 h")
    last, top = KeepLastNode.of(flow, by="k", ttl="1 h"), TopNNode.of(flow, n=1, by="n", ttl="1 h")
    join = RegularJoinNode.of(flow, flow, ttl=("1 h", None))
    told = [holding.until for node in (groups, last, top, join) for holding in holdings(node)]
    idle, came = "1 h after the last row of its key", "1 h after it came"
    assert told == [idle, idle, came, came, NEVER]
    first = KeepFirstNode.of(flow, by="k", ttl="1 h")
    some = {"functions": {"total": hw.sum("n")}, "partition_by": ["k"], "ttl": "1 h", "time": "processing"}
    overs = [
        OverAggregateNode.of(flow, frame=frame, **some) for frame in (Frame(), Frame("rows", 2), Frame("range", 2))
    ]
    told = [holding.until for node in (first, *overs) for holding in holdings(node)]
    assert told == ["1 h after it was given", idle, idle, "the clock passes their time by 2 ms"]
