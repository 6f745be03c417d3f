"""Rows that are chosen among those of a key, and the rolling reduce: what transcripts cannot say."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP
from headwater.testing import Harness

ROWS = "k string, v double, id long"


def test_what_is_known_is_forgotten_in_time_so_state_does_not_grow() -> None:
    harness = Harness(lambda s: s.deduplicate("id", ttl="5 ms"), ROWS)
    sizes = []
    for at in range(0, 200, 10):
        harness.push_all([("a", 0.0, at + n) for n in range(3)], [at] * 3)
        harness.watermark(at)
        sizes.append(harness.state_sizes())
    assert all(size == {"deduplicate": {"known_until": 3, "@timers.event": 3}} for size in sizes)
    assert len(harness.take()) == 60


def test_a_row_near_the_end_of_time_is_known_until_then() -> None:
    harness = Harness(lambda s: s.deduplicate("k", ttl="1 h"), ROWS)
    harness.push_all([("a", 0.0, n) for n in range(2)], [MAX_TIMESTAMP - 5, MAX_TIMESTAMP - 1])
    harness.end()
    assert [row.id for row in harness.take()] == [0]
    assert harness.state_sizes() == {}


def test_a_reduce_that_fails_names_step_key_and_time() -> None:
    harness = Harness(lambda s: s.key_by("k").reduce(lambda so_far, row: 1 / 0), ROWS)
    harness.push(("a", 1.0, 1), at=7)
    with pytest.raises(hw.UserCodeError, match=r"step 'reduce' .*'a' at timestamp 8.*ZeroDivisionError"):
        harness.push(("a", 1.0, 2), at=8)


@pytest.mark.parametrize("result", [None, {"k": "a"}, {"k": "a", "v": "b", "id": 1}, 5])
def test_a_reduce_that_gives_no_row_of_its_schema_is_an_error(result: Any) -> None:
    harness = Harness(lambda s: s.key_by("k").reduce(lambda so_far, row: result), ROWS)
    harness.push(("a", 1.0, 1))
    with pytest.raises(hw.HeadwaterError, match="step 'reduce'"):
        harness.push(("a", 1.0, 2))


def test_top_n_of_rows_that_are_only_added_keeps_those_that_have_a_rank() -> None:
    harness = Harness(lambda s: s.key_by("k").top_n(2, by="v"), ROWS)
    for n in range(50):
        harness.push_all([(key, float(n * 7 % 50), n) for key in "abc"])
    assert harness.state_sizes() == {"top_n": {"rows": 6}}


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("double", [None, -1.0, 0.0, 5.0, math.inf, math.nan]),
        ("boolean", [None, False, True]),
        ("string", [None, "", "a", "b"]),
        ("decimal(10,2)", [None, -1, 0, 5]),
        ("date", [None]),
        ("binary", [None, b"", b"a"]),
    ],
)
def test_null_is_the_least_value_and_nan_the_greatest(dtype: str, values: list[Any]) -> None:
    for descending in (True, False):
        harness = Harness(
            lambda s, falling=descending: s.key_by("k").top_n(9, by="v", descending=falling),
            f"k int, v {dtype}, at int",
        )
        harness.push_all([(1, value, place) for place, value in reversed(list(enumerate(values)))])
        found = [row.at for row in harness.take()]
        assert found == (list(reversed(range(len(values)))) if descending else list(range(len(values))))


Change = tuple[str, int, bool]
CHANGES = st.lists(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 4), st.booleans()), max_size=6), max_size=8)


@examples(150)
@given(CHANGES, st.integers(1, 3), st.booleans())
def test_the_changes_add_up_to_the_first_rows_of_the_table(epochs: list[list[Change]], n: int, retract: bool) -> None:
    """Over a table that changes at random; what is told is put together again, by key and rank or as rows that go."""

    def build(stream: hw.Stream) -> hw.Stream:
        top = stream.as_changelog().key_by("k").top_n(n, by="v")
        return top.where("v >= 0") if retract else top

    harness = Harness(build, "k string, v long, row_kind string")
    table: list[tuple[str, int]] = []
    shown: dict[tuple[str, int], int] = {}
    for epoch in epochs:
        changes = []
        for key, value, adds in epoch:
            if adds:
                table.append((key, value))
            elif (key, value) in table:
                table.remove((key, value))
            else:
                continue
            changes.append((key, value, "+I" if adds else "-D"))
        harness.push_all(changes)
        for key, value, rank, kind in harness.take():
            if kind in ("+I", "+U"):
                assert ((key, rank) in shown) == (kind == "+U" and not retract)
                shown[key, rank] = value
            else:
                assert shown.pop((key, rank)) == value
        tops = {key: sorted((v for k, v in table if k == key), reverse=True)[:n] for key in "ab"}
        assert shown == {(key, at + 1): value for key, top in tops.items() for at, value in enumerate(top)}
