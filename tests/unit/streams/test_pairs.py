from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.streams.pairs import check_has_watermarks
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
    check_has_watermarks(timed, timed, "match")
    for left, right, side in ((timed, plain, "right"), (plain, timed, "left"), (timed.union(plain), timed, "left")):
        with pytest.raises(
            hw.GraphError, match=rf"'match' needs event time.*'plain' without watermarks on the {side} side.*give the"
        ):
            check_has_watermarks(left, right, "match")


def test_input_that_ends_needs_no_watermarks(env: hw.Environment, tmp_path: Path) -> None:
    check_has_watermarks(env.from_rows([], SCHEMA), live(env, tmp_path, "timed", TIMED), "match")


def test_an_interval_join_needs_watermarks(env: hw.Environment, tmp_path: Path) -> None:
    timed, plain = live(env, tmp_path, "timed", TIMED).key_by("k"), live(env, tmp_path, "plain", None).key_by("k")
    with pytest.raises(hw.GraphError, match="'plain' without watermarks on the right side"):
        timed.interval_join(plain, between=("0 s", "1 s"))
