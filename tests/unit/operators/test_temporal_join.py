from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

import headwater as hw
from headwater.data.batch import MIN_TIMESTAMP
from headwater.testing import Harness

INPUTS = {"rows": "k string, v long", "versions": "k string, w long, row_kind string"}
LATE = hw.OutputTag("late", INPUTS["rows"])


def joined(how: str, *, by_function: bool = False) -> Any:
    def build(rows: hw.Stream, versions: hw.Stream) -> hw.Stream:
        key: Any = (lambda row: row.k) if by_function else "k"
        dtype = "string" if by_function else None
        versions = versions.as_changelog()
        return rows.key_by(key, type=dtype).temporal_join(versions.key_by(key, type=dtype), how=how, late=LATE)

    return build


class Naive:
    """The same, row by row, over lists that keep every version."""

    def __init__(self, how: str) -> None:
        self.pads = how == "left"
        self.waiting: list[Any] = []
        self.versions: dict[Any, dict[int, Any]] = {}
        self.watermarks = {"rows": MIN_TIMESTAMP, "versions": MIN_TIMESTAMP}

    @property
    def watermark_ms(self) -> int:
        return min(self.watermarks.values())

    def row(self, key: str | None, value: int, at: int) -> list[Any]:
        if at <= self.watermark_ms:
            return [(key, value, at)]
        self.waiting.append((key, value, at))
        return []

    def version(self, key: str | None, value: int, at: int, kind: str) -> None:
        self.versions.setdefault(key, {})[at] = value if kind[0] == "+" else None

    def watermark(self, side: str, to: int) -> list[Any]:
        self.watermarks[side] = max(self.watermarks[side], to)
        due = sorted((row for row in self.waiting if row[2] <= self.watermark_ms), key=lambda row: row[2])
        self.waiting = [row for row in self.waiting if row[2] > self.watermark_ms]
        out = []
        for key, value, at in due:
            times = [t for t in self.versions.get(key, ()) if t <= at and key is not None]
            version = self.versions[key][max(times)] if times else None
            if version is not None or self.pads:
                out.append((key, value, version, at))
        return out

    def sizes(self) -> dict[str, int]:
        """What must be kept: the waiting rows, and of versions the latest that has passed and all that have not."""
        waiting = sum(1 for key, _, _ in self.waiting if key is not None or self.pads)
        versions = 0
        for key, times in self.versions.items():
            passed = any(t <= self.watermark_ms for t in times)
            versions += 0 if key is None else passed + sum(t > self.watermark_ms for t in times)
        return {name: size for name, size in (("waiting", waiting), ("versions", versions)) if size}


keys = st.sampled_from(["a", "b", "c", None])
times = st.integers(-10, 40)
kinds = st.sampled_from(["+I", "+I", "+U", "-U", "-D"])
scripts = st.lists(
    st.one_of(
        st.tuples(st.just("row"), keys, st.integers(0, 9), times),
        st.tuples(st.just("version"), keys, st.integers(0, 9), times, kinds),
        st.tuples(st.just("watermark"), st.sampled_from(["rows", "versions"]), times),
    ),
    max_size=40,
)


def shown(rows: list[Any]) -> list[Any]:
    return [(row.k, row.v, row.w, row.timestamp) for row in rows]


def twice_at_once(script: list[Any]) -> bool:
    """Whether a key gets two versions for one time, of which both may be kept until the watermark passes."""
    given = [(action[1], action[3]) for action in script if action[0] == "version"]
    return len(given) != len(set(given))


@examples(250)
@given(script=scripts, how=st.sampled_from(["inner", "left"]), by_function=st.booleans(), restore=st.integers(0, 40))
def test_row_by_row_it_gives_what_lists_give(script: list[Any], how: str, by_function: bool, restore: int) -> None:
    build = joined(how, by_function=by_function)
    harness, naive = Harness(build, INPUTS), Naive(how)
    ends: list[Any] = [("watermark", "rows", 50), ("watermark", "versions", 50)]
    for number, (kind, *facts) in enumerate([*script, *ends]):
        if number == restore:
            harness = Harness.restore(build, INPUTS, harness.snapshot())
        if kind == "row":
            key, value, at = facts
            harness.push((key, value), at=at, to="rows")
            assert [(*row, row.timestamp) for row in harness.take(LATE)] == naive.row(key, value, at)
        elif kind == "version":
            key, value, at, row_kind = facts
            naive.version(key, value, at, row_kind)
            harness.push((key, value, row_kind), at=at, to="versions")
        else:
            expected = naive.watermark(*facts)
            harness.watermark(facts[1], of=facts[0])
            assert shown(harness.take()) == expected
        assert harness.take() == []
        if not twice_at_once(script):
            assert harness.state_sizes().get("temporal_join", {}) == naive.sizes()
    assert harness.state_sizes().get("temporal_join", {}) == naive.sizes()


@examples(120)
@given(script=scripts, how=st.sampled_from(["inner", "left"]))
def test_results_do_not_depend_on_epochs_or_copies_of_state(script: list[Any], how: str) -> None:
    build = joined(how)
    harness, naive = Harness(build, INPUTS, parallelism=2), Naive(how)
    for kind, group in itertools.groupby(script, lambda action: action[0]):
        acts = [action[1:] for action in group]
        if kind == "row":
            harness.push_all([act[:2] for act in acts], [act[2] for act in acts], to="rows")
            assert sorted(map(repr, shown_late(harness))) == sorted(repr(late) for a in acts for late in naive.row(*a))
        elif kind == "version":
            harness.push_all([(key, value, k) for key, value, _, k in acts], [act[2] for act in acts], to="versions")
            for act in acts:
                naive.version(*act)
        else:
            for side, to in acts:
                expected = naive.watermark(side, to)
                harness.watermark(to, of=side)
                assert sorted(shown(harness.take()), key=repr) == sorted(expected, key=repr)
        harness = Harness.restore(build, INPUTS, harness.snapshot(), parallelism=2)


def shown_late(harness: Harness) -> list[Any]:
    return [(*row, row.timestamp) for row in harness.take(LATE)]


def test_each_key_keeps_one_version_however_many_there_were() -> None:
    harness = Harness(joined("inner"), INPUTS)
    for round_ in range(30):
        changes = [(f"k{i % 10}", i, "+I") for i in range(200)]
        harness.push_all(changes, [1_000 * round_ + i for i in range(200)], to="versions")
        harness.watermark(1_000 * round_ + 199)
        assert harness.state_sizes() == {"temporal_join": {"versions": 10}}
        stored = harness._cluster.hosts[1, 0]._entries[0].operator._versions
        assert sum(map(len, stored._runs)) <= 400, "what is outdated is given back"
    harness.push_all([(f"k{i}", -1, "+I") for i in range(10)], list(range(10)), to="versions")
    assert harness.state_sizes() == {"temporal_join": {"versions": 10}}
    harness.push(("k3", 0), at=50_000, to="rows")
    harness.watermark(50_000)
    assert shown(harness.take()) == [("k3", 0, 193, 50_000)]


def test_of_versions_for_one_time_the_last_to_arrive_is_valid() -> None:
    harness = Harness(joined("left"), INPUTS)
    harness.push_all([("a", 1, "+I"), ("a", 2, "+U"), ("b", 1, "+I"), ("b", 1, "-D")], [10] * 4, to="versions")
    harness.push(("a", 3, "+U"), at=10, to="versions")
    harness.push_all([("a", 0), ("b", 0)], [10, 10], to="rows")
    harness.watermark(10)
    assert shown(harness.take()) == [("a", 0, 3, 10), ("b", 0, None, 10)]


def test_kinds_of_the_left_side_are_a_column_like_others() -> None:
    inputs = {"rows": "k string, row_kind string", "versions": "k string, w long, row_kind string"}
    harness = Harness(lambda a, b: a.key_by("k").temporal_join(b.as_changelog().key_by("k")), inputs)
    harness.push(("a", 7, "+I"), at=1, to="versions")
    harness.push(("a", "-D"), at=2, to="rows")
    harness.watermark(5)
    assert [tuple(row) for row in harness.take()] == [("a", "-D", 7)]


def test_late_rows_are_counted_where_no_output_takes_them() -> None:
    env = hw.Environment("test", engine="local", max_rows_per_epoch=1)
    by_ts = hw.Watermarks.monotonous("ts")
    rows = env.from_rows([("a", 10), ("a", 20), ("a", 5)], "k string, ts long", by_ts, name="rows")
    versions = env.from_rows([("a", 1), ("a", 30), ("a", 31)], "k string, ts long", by_ts, name="versions")
    sink = hw.connectors.memory()
    rows.key_by("k").temporal_join(versions.key_by("k")).sink(sink)
    job = env.run()
    assert [tuple(row) for row in sink.rows] == [("a", 10, 1), ("a", 20, 1)]
    assert job.status().steps["temporal_join"]["late_dropped"] == 1


def test_wrong_use_is_refused_when_the_graph_is_built(tmp_path: Path) -> None:
    env = hw.Environment("test", engine="local")
    schema = "k string, ts long"
    rows, versions = env.from_rows([], schema, name="l"), env.from_rows([], schema, name="r")
    live = env.source(hw.connectors.log(tmp_path, "live"), schema, name="live").key_by("k")
    a, b = rows.key_by("k"), versions.key_by("k")
    cases: list[tuple[str, Any]] = [
        ("needs both streams keyed", lambda: a.temporal_join(versions)),  # type: ignore[arg-type]
        ("keys of one type", lambda: a.temporal_join(versions.key_by("ts"))),
        ("joins by how='inner' or 'left'; got 'full'", lambda: a.temporal_join(b, how="full")),
        ("'live' without watermarks on the right side", lambda: a.temporal_join(live)),
        ("'live' without watermarks on the left side", lambda: live.temporal_join(a)),
        ("needs for late an hw.OutputTag", lambda: a.temporal_join(b, late=LATE)),
    ]
    for message, call in cases:
        with pytest.raises(hw.GraphError, match=message):
            call()


@pytest.mark.parametrize("side", ["rows", "versions"])
def test_a_row_without_event_time_is_an_error(side: str) -> None:
    harness = Harness(joined("inner"), INPUTS)
    with pytest.raises(hw.RowError, match="event time"):
        harness.push(("a", 1) if side == "rows" else ("a", 1, "+I"), to=side)


@pytest.mark.parametrize("reads_changes", [False, True])
def test_versions_are_all_there_beside_a_step_that_needs_to_know_what_goes(*, reads_changes: bool) -> None:
    env = hw.Environment("versions", engine="local")
    rates = [("eur", 1, 10), ("eur", 2, 20), ("usd", 5, 15), ("eur", 3, 30)]
    given_rates = env.from_rows(rates, "c string, rate int, ms long", hw.Watermarks.monotonous("ms"), name="rates")
    versions = given_rates.as_changelog(key="c").select("c", "rate")
    orders = env.from_rows(
        [("eur", 12), ("eur", 25), ("usd", 16), ("eur", 31)], "c string, at long", hw.Watermarks.monotonous("at")
    )
    sink, changes = hw.connectors.memory(), hw.connectors.memory()
    orders.temporal_join(versions, on="c").sink(sink)
    if reads_changes:
        versions.key_by("c").agg(least=hw.min("rate")).sink(changes, name="changes")
    env.run(bounded=True)
    assert sorted((row.c, row.at, row.rate) for row in sink.rows) == [
        ("eur", 12, 1),
        ("eur", 25, 2),
        ("eur", 31, 3),
        ("usd", 16, 5),
    ]
    assert sorted((row.c, row.least) for row in changes.rows) == ([("eur", 3), ("usd", 5)] if reads_changes else [])
