"""Rows that are chosen among those of a key, and the rolling reduce: what transcripts cannot say."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP
from headwater.graph.nodes import KeepFirstNode, KeepLastNode, TopNNode, WindowTopNNode
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


def test_with_a_ttl_top_n_forgets_rows_by_the_clock_and_ranks_without_them() -> None:
    def build(stream: Any) -> Any:
        return stream.key_by("k").top_n(2, by="v", ttl="1 s")

    harness = Harness(build, ROWS)
    harness.push_all([("a", 9.0, 1), ("b", 8.0, 2)])
    harness.advance_to(600)
    harness.push(("a", 7.0, 3))
    harness.take()
    harness.advance_to(999)
    assert harness.state_sizes() == {"top_n": {"rows": 3}}
    harness = Harness.restore(build, ROWS, harness.snapshot())
    harness.advance_to(1_000)
    assert harness.state_sizes() == {"top_n": {"rows": 1}}
    assert harness.take() == [], "what was told stays"
    harness.push(("a", 5.0, 4))
    assert [(row.id, row.rank) for row in harness.take()] == [(4, 2)]
    harness.advance_to(10_000)
    assert harness.state_sizes() == {}
    with pytest.raises(hw.GraphError, match="needs a ttl of more than nothing"):
        Harness(lambda s: s.key_by("k").top_n(2, by="v", ttl="0 s"), ROWS)


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


@examples(150)
@given(CHANGES, st.integers(1, 3), st.integers(1, 3), st.booleans())
def test_rows_without_ranks_add_up_to_the_first_rows_of_the_table(
    epochs: list[list[Change]], first: int, more: int, together: bool
) -> None:
    """From a rank on, over a table that changes at random; what stays is not told again."""
    n = first + more
    partition_by: list[str] = [] if together else ["k"]

    def build(stream: hw.Stream) -> hw.Stream:
        changes = stream.as_changelog()
        node = TopNNode.of(changes._flow, n=n, first=first, by="v", partition_by=partition_by, rank=None)
        return changes._add(node)

    harness = Harness(build, "k string, v long, row_kind string")
    table: list[tuple[str, int]] = []
    shown: Counter[tuple[str, int]] = Counter()
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
        before = shown.copy()
        for key, value, kind in harness.take():
            shown[key, value] += 1 if kind == "+I" else -1
            assert shown[key, value] >= 0
            assert shown[key, value] != before[key, value]
        groups = [table] if together else [[row for row in table if row[0] == key] for key in "ab"]
        tops = [sorted(rows, key=lambda row: -row[1])[first - 1 : n] for rows in groups]
        assert +shown == Counter(row for top in tops for row in top)


def node_of(build: Any, **settings: Any) -> Any:
    return lambda stream: stream._add(build(stream._flow, **settings))


TIMED = st.lists(
    st.tuples(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=6), st.integers(0, 4)), max_size=6
)


@examples(100)
@given(TIMED)
def test_the_first_row_by_time_is_that_of_all_that_were_not_late(epochs: list[tuple[list[Any], int]]) -> None:
    harness = Harness(node_of(KeepFirstNode.of, by="k"), "k string, id long")
    watermark = -1
    harness.watermark(watermark)
    given_keys: set[str] = set()
    timely: list[tuple[str, int, int]] = []
    for number, (given_rows, ahead) in enumerate(epochs):
        rows = [(key, 100 * number + place, watermark + at) for place, (key, at) in enumerate(given_rows)]
        harness.push_all([row[:2] for row in rows], [at for _, _, at in rows])
        timely += [row for row in rows if row[2] > watermark]
        watermark += ahead
        harness.watermark(watermark)
        due = [row for row in sorted(timely, key=lambda row: row[2]) if row[2] <= watermark]
        expected = []
        for row in due:
            if row[0] not in given_keys:
                given_keys.add(row[0])
                expected.append(row[:2])
        assert [tuple(row) for row in harness.take()] == expected
    assert harness.status("keep_first")["late_dropped"] == sum(len(rows) for rows, _ in epochs) - len(timely)


def test_first_rows_of_one_time_are_given_as_they_came() -> None:
    """Whichever key came first, by a row of a later time."""
    harness = Harness(node_of(KeepFirstNode.of, by="k"), "k string, id long")
    harness.push_all([("b", 0), ("a", 1), ("b", 2)], [1, 0, 0])
    harness.watermark(0)
    assert [tuple(row) for row in harness.take()] == [("a", 1), ("b", 2)]


@examples(100)
@given(TIMED)
def test_the_last_row_by_time_is_that_of_all_so_far(epochs: list[tuple[list[Any], int]]) -> None:
    harness = Harness(node_of(KeepLastNode.of, by="k"), "k string, id long")
    last: dict[str, tuple[int, int]] = {}
    for number, (rows, ahead) in enumerate(epochs):
        before = {key: row for key, (_, row) in last.items()}
        for place, (key, at) in enumerate(rows):
            if key not in last or at >= last[key][0]:
                last[key] = (at, 100 * number + place)
        harness.push_all([(key, 100 * number + place) for place, (key, _) in enumerate(rows)], [at for _, at in rows])
        harness.watermark(10 * number + ahead)
        told = {row.k: (row.id, row.row_kind) for row in harness.take()}
        changed = {key: row for key, (_, row) in last.items() if before.get(key) != row}
        assert told == {key: (row, "+U" if key in before else "+I") for key, row in changed.items()}


def test_with_a_ttl_a_key_has_a_first_row_again_so_long_after_it_was_given() -> None:
    build = node_of(KeepFirstNode.of, by="k", ttl="1 s")
    harness = Harness(build, "k string, id long")
    harness.push(("a", 1), at=10)
    harness.advance_to(5_000)
    harness.watermark(10)
    harness.push(("a", 2), at=20)
    harness.advance_to(5_999)
    harness.watermark(20)
    harness = Harness.restore(build, "k string, id long", harness.snapshot())
    harness.advance_to(6_000)
    harness.push(("a", 3), at=30)
    harness.watermark(30)
    assert [row.id for row in harness.take()] == [3]
    harness.advance_to(7_000)
    assert harness.state_sizes() == {}


@examples(100)
@given(TIMED, st.integers(1, 2), st.integers(0, 2), st.booleans())
def test_the_ranks_of_a_window_are_those_of_its_rows(
    epochs: list[tuple[list[Any], int]], first: int, more: int, descending: bool
) -> None:
    """Rows of windows of five milliseconds, by what they are worth."""
    settings: dict[str, Any] = {"n": first + more, "first": first, "by": "v", "descending": descending}
    harness = Harness(node_of(WindowTopNNode.of, window_end="until", **settings), "v string, id long, until long")
    watermark = -1
    harness.watermark(watermark)
    rows: list[tuple[str, int, int]] = []
    for number, (given_rows, ahead) in enumerate(epochs):
        new = [(v, 100 * n + number, (watermark + at) // 5 * 5 + 5) for n, (v, at) in enumerate(given_rows)]
        harness.push_all(new, [until - 1 for _, _, until in new])
        rows += [row for row in new if row[2] - 1 > watermark]
        watermark += ahead
        harness.watermark(watermark)
        expected = []
        for until in sorted({row[2] for row in rows if row[2] - 1 <= watermark}):
            own = sorted((row for row in rows if row[2] == until), key=lambda row: row[0], reverse=descending)
            expected += [(*row, first + place) for place, row in enumerate(own[first - 1 : first + more])]
        rows = [row for row in rows if row[2] - 1 > watermark]
        assert [tuple(row) for row in harness.take()] == expected
    harness.end()
    assert harness.state_sizes() == {}
