from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.graph.checks import check_has_watermarks
from headwater.streams.stream import Stream

SCHEMA = "k string, t long"
TIMED = hw.Watermarks.monotonous("t")


@pytest.fixture
def env() -> hw.Environment:
    return hw.Environment("pairs", engine="local")


def live(env: hw.Environment, path: Path, name: str, watermarks: hw.Watermarks | None) -> Stream:
    """A stream that does not end, some steps behind its source."""
    source = env.source(hw.connectors.log(path, name), SCHEMA, watermarks, name=name)
    return source.where("t > 0").key_by("k").agg(t=hw.max("t"))


def test_a_live_source_without_watermarks_is_refused_by_name_and_side(env: hw.Environment, tmp_path: Path) -> None:
    timed, plain = live(env, tmp_path, "timed", TIMED), live(env, tmp_path, "plain", None)
    check_has_watermarks(timed._flow, timed._flow, "match")
    for left, right, side in ((timed, plain, "right"), (plain, timed, "left"), (timed.union(plain), timed, "left")):
        with pytest.raises(
            hw.GraphError, match=rf"'match' needs event time.*'plain' without watermarks on the {side} side.*give the"
        ):
            check_has_watermarks(left._flow, right._flow, "match")


def test_input_that_ends_needs_no_watermarks(env: hw.Environment, tmp_path: Path) -> None:
    check_has_watermarks(env.from_rows([], SCHEMA)._flow, live(env, tmp_path, "timed", TIMED)._flow, "match")


def test_an_interval_join_needs_watermarks(env: hw.Environment, tmp_path: Path) -> None:
    timed, plain = live(env, tmp_path, "timed", TIMED).key_by("k"), live(env, tmp_path, "plain", None).key_by("k")
    with pytest.raises(hw.GraphError, match="'plain' without watermarks on the right side"):
        timed.interval_join(plain, between=("0 s", "1 s"))


def test_streams_can_be_keyed_by_the_join_itself() -> None:
    env = hw.Environment("test", engine="local")
    by_ts = hw.Watermarks.monotonous("ts")
    left = env.from_rows([("x", 1, 10)], "a string, b long, ts long", by_ts, name="left")
    right = env.from_rows([("x", 1, 7.5, 10)], "a string, c long, price double, ts long", by_ts, name="right")
    joins = {
        "interval": left.interval_join(right, ("0 s", "0 s"), on={"a": "a", "b": "c"}),
        "regular": left.join_regular(right, on={"a": "a", "b": "c"}),
        "temporal": left.temporal_join(right, on=["a"]),
    }
    for join in joins.values():
        assert [row.price for row in join.collect()] == [7.5]
    with pytest.raises(hw.GraphError, match="takes `on` for streams without key"):
        left.key_by("a").join_regular(right, on="a")
    with pytest.raises(hw.GraphError, match="needs columns to join on"):
        left.join_regular(right, on=[])
    with pytest.raises(hw.GraphError, match="needs keyed streams"):
        left.join_regular(right)
