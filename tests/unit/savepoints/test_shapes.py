"""Programs that go on from a savepoint in another shape: the results are those of the run that was not interrupted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.connectors.memory import RowsSource

SCHEMA = "k string, n bigint, at bigint"
ROWS = [(f"k{n * 7 % 5}", n, 1000 * n - 1500 * (n % 3 == 2)) for n in range(60)]
MARKS = hw.Watermarks.bounded("at", "2 s")
Build = Callable[..., hw.Stream]


def env_of(build: Build, sink: Any, *inputs: str, parallelism: int = 2, **settings: Any) -> hw.Environment:
    """A program over inputs of the same rows, ten of each in an epoch."""
    env = hw.Environment("shapes", engine="local", parallelism=parallelism, max_rows_per_epoch=10, **settings)
    streams = [env.from_rows(ROWS, SCHEMA, MARKS, name=name) for name in inputs or ("rows",)]
    build(*streams).sink(sink)
    return env


class Parts:
    """A program up to the middle of its input, and a savepoint of it."""

    def __init__(self, folder: Path, build: Build, *inputs: str, parallelism: int = 2, **settings: Any) -> None:
        self._folder, self._inputs, self._settings = folder, inputs, settings
        self._whole, self._kept = hw.connectors.memory(), hw.connectors.memory()
        env_of(build, self._whole, *inputs, **settings).run()
        job = run_epochs(env_of(build, self._kept, *inputs, parallelism=parallelism, **settings), 3)
        self.path: Path = job.stop(savepoint=folder / "sp")

    def goes_on(self, build: Build, *inputs: str, parallelism: int = 3, **start: Any) -> hw.Job:
        """The rest, in another program, gives what is missing."""
        kept = hw.connectors.memory()
        env = env_of(build, kept, *(inputs or self._inputs), parallelism=parallelism, **self._settings)
        job = env.run(from_=self.path, **start)
        found = [*self._kept.rows, *kept.rows]
        assert Counter(map(repr, found)) == Counter(map(repr, self._whole.rows))
        assert kept.rows
        return job

    def runs(self, build: Build, *inputs: str, **start: Any) -> list[Any]:
        """What the rest gives in another program, whatever it is."""
        kept = hw.connectors.memory()
        env_of(build, kept, *(inputs or self._inputs), **self._settings).run(from_=self.path, **start)
        return kept.rows

    def is_refused(self, build: Build, *why: str, **start: Any) -> None:
        kept = hw.connectors.memory()
        with pytest.raises(hw.SavepointError) as error:
            env_of(build, kept, *self._inputs, **self._settings).run(from_=self.path, **start)
        for part in why:
            assert part in str(error.value)
        assert kept.rows == []


class Running(hw.KeyedProcessFunction):
    """A running total, and a word about it a while later in event time."""

    total = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        ctx.timers.event_time(ctx.timestamp + 5000)
        yield ctx.key, self.total.get(), ctx.timestamp

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
        yield ctx.key, -self.total.get(), timer.timestamp


def running(stream: hw.Stream, uid: str = "running") -> hw.Step:
    return stream.key_by("k").process(Running(), SCHEMA).with_uid(uid)


def sums(stream: hw.Stream, lateness: str = "0 s", **how: Any) -> hw.Step:
    windowed = stream.key_by("k").window(hw.tumbling("10 s")).allow_lateness(lateness)
    for name, value in how.items():
        windowed = getattr(windowed, name)(value)
    return windowed.agg(total=hw.sum("n"), rows=hw.count()).with_uid("sums")


# -- subtasks and key groups ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("parallelism", [1, 2, 3, 8])
def test_on_another_number_of_subtasks(tmp_path: Path, parallelism: int) -> None:
    Parts(tmp_path, lambda s: sums(running(s))).goes_on(lambda s: sums(running(s)), parallelism=parallelism)


def test_with_another_number_of_key_groups(tmp_path: Path) -> None:
    parts = Parts(tmp_path, lambda s: sums(running(s)), key_groups=64)
    parts._settings = {"key_groups": 100}
    parts.goes_on(lambda s: sums(running(s)), parallelism=7)


@pytest.mark.parametrize(("before", "after"), [("disk", "memory"), ("memory", "disk")])
def test_with_state_kept_elsewhere(tmp_path: Path, before: str, after: str) -> None:
    def build(stream: hw.Stream) -> hw.Stream:
        return sessions(running(stream), "5 s")

    parts = Parts(tmp_path, build, state_backend=before)
    parts._settings = {"state_backend": after}
    parts.goes_on(build)


# -- steps added, removed, renamed, chained in another way -----------------------------------------------------------


def test_a_step_between_two_that_keep_state(tmp_path: Path) -> None:
    parts = Parts(tmp_path, lambda s: sums(running(s)))
    parts.goes_on(lambda s: sums(running(s).rebalance().map(lambda r: r).with_uid("between")))
    parts.goes_on(lambda s: sums(running(s).key_by("n").process(Same(), SCHEMA).with_uid("between")))


class Same(hw.KeyedProcessFunction):
    seen = hw.ValueState("bigint")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.seen.set(event.n)
        yield event


def test_event_time_does_not_wait_for_steps_that_are_gone(tmp_path: Path) -> None:
    moved = lambda s: sums(running(s.rebalance().map(lambda r: r).with_uid("moved")))  # noqa: E731
    Parts(tmp_path, moved).goes_on(lambda s: sums(running(s)))


def test_a_step_that_kept_state_goes_only_with_permission(tmp_path: Path) -> None:
    def between(stream: hw.Stream) -> hw.Stream:
        return sums(running(stream).key_by("n").process(Same(), SCHEMA).with_uid("between"))

    parts = Parts(tmp_path, between)
    parts.is_refused(
        lambda s: sums(running(s)),
        "has state that the program has no place for: between/seen",
        "renamed={old: new}",
        "allow_dropped_state=True",
    )
    parts.goes_on(lambda s: sums(running(s)), allow_dropped_state=True)


def test_unions_and_branches_are_made_and_undone(tmp_path: Path) -> None:
    def divided(stream: hw.Stream) -> hw.Stream:
        return sums(running(stream.where("n % 2 = 0").union(stream.where("n % 2 = 1").rebalance().map(lambda r: r))))

    Parts(tmp_path / "made", lambda s: sums(running(s)), parallelism=1).goes_on(divided, parallelism=1)
    Parts(tmp_path / "undone", divided, parallelism=1).goes_on(lambda s: sums(running(s)), parallelism=1)


def test_a_display_name_means_nothing_where_there_is_a_uid(tmp_path: Path) -> None:
    def named(stream: hw.Stream, name: str) -> hw.Stream:
        return stream.key_by("k").process(Running(), SCHEMA, name=name).with_uid("running")

    Parts(tmp_path, lambda s: named(s, "one")).goes_on(lambda s: named(s, "other"))


def test_renamed_steps_keep_their_state_and_event_time(tmp_path: Path) -> None:
    parts = Parts(tmp_path, lambda s: sums(running(s)))
    parts.is_refused(lambda s: sums(running(s, "totals")), "running/total")
    parts.goes_on(lambda s: sums(running(s, "totals")), renamed={"running": "totals"})
    assert len(parts.runs(lambda s: sums(running(s, "totals")), allow_dropped_state=True)) > 0


def test_a_step_that_is_called_like_the_side_of_another_is_no_side(tmp_path: Path) -> None:
    def joined(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        return running(left, "left").key_by("k").interval_join(running(right, "right").key_by("k"), ("-2 s", "2 s"))

    Parts(tmp_path, joined, "one", "two").goes_on(joined)


# -- sources and splits ------------------------------------------------------------------------------------------------


def test_a_source_is_removed_with_permission_and_nobody_waits_for_it(tmp_path: Path) -> None:
    def both(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        return sums(left.union(right.where("n < 0")))

    parts = Parts(tmp_path, both, "one", "two")
    parts.goes_on(both)
    with pytest.raises(hw.SavepointError, match="no place for: two/@position"):
        parts.runs(sums, "one")
    parts.goes_on(sums, "one", allow_dropped_state=True)


def test_a_source_is_added_and_event_time_waits_for_it(tmp_path: Path) -> None:
    parts = Parts(tmp_path, sums, "one")
    parts.goes_on(lambda one, two: sums(one.union(two.where("n < 0"))), "one", "two")
    parts.goes_on(lambda two, one: sums(one.union(two.where("n < 0"))), "two", "one")


def split_env(sink: Any, splits: list[list[Any]]) -> hw.Environment:
    env = hw.Environment("splits", engine="local", max_rows_per_epoch=len(splits) * 5)
    source = RowsSource(splits, hw.Schema.of(SCHEMA))
    sums(env.source(source, SCHEMA, MARKS, name="rows")).sink(sink)
    return env


def test_splits_that_came_since_are_read_from_their_beginning(tmp_path: Path) -> None:
    old, new = [ROWS[::2], ROWS[1::2]], [(key, n + 1000, at) for key, n, at in ROWS[35:]]
    first, rest = hw.connectors.memory(), hw.connectors.memory()
    path = run_epochs(split_env(first, old), 3).stop(savepoint=tmp_path / "sp")
    job = split_env(rest, [*old, new]).run(from_=path)
    assert job.status().positions == {"rows": {"0": 30, "1": 30, "2": 25}}
    found = sum(row.rows for row in [*first.rows, *rest.rows])
    assert found + job.status().steps["sums"]["late_dropped"] == 85


def test_nobody_waits_for_a_split_that_is_gone(tmp_path: Path) -> None:
    first, rest = hw.connectors.memory(), hw.connectors.memory()
    path = run_epochs(split_env(first, [ROWS[::2], ROWS[1::2]]), 2).stop(savepoint=tmp_path / "sp")
    job = run_epochs(split_env(rest, [ROWS[::2]]), 2, from_=path)
    assert rest.rows
    assert job.status().positions == {"rows": {"0": 20}}


def test_a_source_that_ends_before_its_position_is_another_one(tmp_path: Path) -> None:
    path = run_epochs(split_env(hw.connectors.memory(), [ROWS, ROWS]), 4).stop(savepoint=tmp_path / "sp")
    with pytest.raises(hw.SavepointError, match="has read rows/1 up to position 20, where there are only 3 rows"):
        split_env(hw.connectors.memory(), [ROWS, ROWS[:3]]).run(from_=path)


# -- windows -----------------------------------------------------------------------------------------------------------


def firing(stream: hw.Stream, lateness: str) -> hw.Step:
    """The same windows element by element: by a trigger of their own."""
    return sums(stream, lateness, trigger=hw.early(count=3))


def rows_kept(stream: hw.Stream, lateness: str) -> hw.Step:
    windowed = stream.key_by("k").window(hw.sliding("4 s", "2 s")).allow_lateness(lateness)
    return windowed.process(Fired(), "k string, n bigint").with_uid("sums")


def sessions(stream: hw.Stream, lateness: str) -> hw.Step:
    windowed = stream.key_by("k").window(hw.session("6 s")).allow_lateness(lateness).panes("retracting")
    return windowed.process(All(), "k string, n bigint").with_uid("sums")


class All(hw.ProcessWindowFunction):
    def process(self, elements: Any, ctx: hw.WindowContext) -> Any:
        yield ctx.key, sum(row.n for row in elements)


class Fired(All):
    fired = hw.per_window(hw.ValueState("bigint", default=0))

    def process(self, elements: Any, ctx: hw.WindowContext) -> Any:
        self.fired.set(self.fired.get() + 1)
        return super().process(elements, ctx)


def joined(stream: hw.Stream, lateness: str) -> hw.Step:
    pairs = stream.join(stream.where("n % 2 = 0")).where("k").equal_to("k").window(hw.tumbling("4 s"))
    return pairs.allow_lateness(lateness).apply().with_uid("sums")


WINDOWS = {"sliced": sums, "triggered": firing, "rows": rows_kept, "sessions": sessions, "joined": joined}


@pytest.mark.parametrize("after", ["0 s", "5 s", "90 s"])
@pytest.mark.parametrize("before", ["0 s", "5 s", "90 s"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_another_lateness_leaves_nothing_behind(tmp_path: Path, windows: str, before: str, after: str) -> None:
    """No row of the input is late, so that the results are the same with every lateness."""
    build = WINDOWS[windows]
    job = Parts(tmp_path, lambda s: build(s, before)).goes_on(lambda s: build(s, after), parallelism=2)
    saved = hw.savepoint.read(job.savepoint(tmp_path / "end"))
    assert [place for place in saved if saved[place].rows] == []


@pytest.mark.parametrize("windows", WINDOWS)
def test_a_shorter_lateness_lets_windows_go_that_were_kept(tmp_path: Path, windows: str) -> None:
    """Event time goes on, far beyond the longer lateness, and does not end."""
    build = WINDOWS[windows]
    parts = Parts(tmp_path, lambda s: build(s, "15 s"))
    env = hw.Environment("shapes", engine="local", max_rows_per_epoch=10)
    rows = [*ROWS, *(("far", 0, 1000 * n) for n in range(200, 240))]
    build(env.from_rows(rows, SCHEMA, MARKS, name="rows"), "1 s").sink(hw.connectors.memory())
    job = run_epochs(env, 6, from_=parts.path)
    kept = job.stop(savepoint=tmp_path / "later")
    saved = hw.savepoint.read(kept)
    for place in saved:
        table = saved[place].to_arrow()
        keys = table["k" if "k" in table.column_names else "key"].to_pylist() if len(table) else []
        assert {key["key"] if isinstance(key, dict) else key for key in keys} <= {"far"}, place


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (
            lambda k: k.window(hw.tumbling("5 s")).agg(n=hw.sum("n")),
            "windows was tumbling(10000 ms), is tumbling(5000 ms)",
        ),
        (lambda k: k.window(hw.session("5 s")).agg(n=hw.sum("n")), "windows was tumbling"),
        (lambda k: k.window(hw.tumbling("10 s")).agg(n=hw.max("n")), "aggregates was"),
        (lambda k: k.window(hw.tumbling("10 s")).agg(n=hw.sum("n"), m=hw.count()), "aggregates was"),
        (lambda k: k.window(hw.tumbling("10 s")).trigger(hw.triggers.count(2)).agg(n=hw.sum("n")), "trigger was"),
        (lambda k: k.window(hw.tumbling("10 s")).reduce(lambda a, b: a), "aggregates was"),
        (lambda k: k.window(hw.tumbling("10 s")).panes("discarding").agg(n=hw.sum("n")), "panes was"),
        (
            lambda k: k.agg(n=hw.sum("n")),
            "operation was",
        ),
    ],
    ids=["size", "kind", "aggregate", "more", "trigger", "fold", "panes", "no window"],
)
def test_other_windows_are_another_step(tmp_path: Path, build: Callable[[Any], Any], why: str) -> None:
    parts = Parts(tmp_path, lambda s: s.key_by("k").window(hw.tumbling("10 s")).agg(n=hw.sum("n")).with_uid("w"))
    parts.is_refused(
        lambda s: build(s.key_by("k")).with_uid("w"),
        "cannot go on from the savepoint",
        "w/slices: impossible",
        why,
        "a step with another uid starts without state",
    )


def test_windows_by_slices_are_not_those_of_a_function(tmp_path: Path) -> None:
    class Told(hw.ProcessWindowFunction):
        def process(self, elements: Any, ctx: hw.WindowContext) -> Any:
            yield ctx.key, elements[0].n

    windows = lambda s: s.key_by("k").window(hw.tumbling("10 s"))  # noqa: E731
    parts = Parts(tmp_path, lambda s: windows(s).agg(n=hw.sum("n")).with_uid("w"))
    parts.is_refused(
        lambda s: windows(s).agg(process=Told(), schema="k string, n bigint", n=hw.sum("n")).with_uid("w"),
        "it was kept as slices, is kept as kept",
    )


# -- what else is another step -----------------------------------------------------------------------------------------


def test_a_key_of_another_type_is_refused(tmp_path: Path) -> None:
    def by(stream: hw.Stream, *key: Any, **how: Any) -> hw.Stream:
        return stream.key_by(*key, **how).process(Same(), SCHEMA).with_uid("same")

    parts = Parts(tmp_path, lambda s: by(s, "n"))
    parts.is_refused(lambda s: by(s, "k"), "same/seen: impossible (the key was bigint, is string)")
    parts.is_refused(lambda s: by(s, "n", "at"), "the key was bigint, is struct<n:bigint,at:bigint>")
    parts.is_refused(lambda s: by(s, lambda r: 1, type="int"), "the key was bigint, is int")
    found = hw.savepoint.check(parts.path, env_of(lambda s: by(s, "at"), hw.connectors.memory()))
    assert "the key was n: bigint, is at: bigint" in str(found)


def test_rows_that_are_kept_by_another_key_are_refused(tmp_path: Path) -> None:
    def joined(left: hw.Stream, right: hw.Stream, key: Any) -> hw.Stream:
        keyed = [s.key_by(key) if isinstance(key, str) else s.key_by(key, type="bigint") for s in (left, right)]
        return keyed[0].join_regular(keyed[1], ttl="1 h").with_uid("joined")

    parts = Parts(tmp_path, lambda a, b: joined(a, b, "n"), "one", "two")
    parts.is_refused(lambda a, b: joined(a, b, "at"), "joined/left: impossible (the key was n, is at)")
    parts.is_refused(lambda a, b: joined(a, b, lambda r: r.n), "the key was n, is @key")


JOINS: dict[str, Callable[..., hw.Stream]] = {
    "interval": lambda a, b, **how: a.interval_join(b, **{"between": ("-2 s", "2 s"), **how}),
    "regular": lambda a, b, **how: a.join_regular(b, **{"ttl": "1 h", **how}),
    "temporal": lambda a, b, **how: a.temporal_join(b, **how),
}
ALONE = hw.OutputTag("alone", SCHEMA)


@pytest.mark.parametrize(
    ("join", "how", "why"),
    [
        ("interval", {"between": ("-3 s", "2 s")}, "between was [-2000, 2000], is [-3000, 2000]"),
        ("interval", {"between": ("-1 s", "1 s")}, "between was [-2000, 2000], is [-1000, 1000]"),
        ("interval", {"unmatched_left": ALONE}, "tells unmatched rows was None, is True"),
        ("regular", {"how": "left"}, "how was inner, is left"),
        ("temporal", {"how": "left"}, "how was inner, is left"),
    ],
)
def test_other_joins_are_other_steps(tmp_path: Path, join: str, how: dict[str, Any], why: str) -> None:
    def joined(left: hw.Stream, right: hw.Stream, **how: Any) -> hw.Stream:
        return JOINS[join](left.key_by("k"), right.key_by("k"), **how).with_uid("joined")

    parts = Parts(tmp_path, joined, "one", "two")
    parts.goes_on(joined)
    parts.is_refused(lambda a, b: joined(a, b, **how), why)


def test_a_join_may_keep_its_rows_for_another_time(tmp_path: Path) -> None:
    joined = lambda a, b, ttl: a.key_by("n").join_regular(b.key_by("n"), ttl=ttl).with_uid("joined")  # noqa: E731
    parts = Parts(tmp_path, lambda a, b: joined(a, b, "1 h"), "one", "two")
    parts.goes_on(lambda a, b: joined(a, b, "10 h"))


@pytest.mark.parametrize("join", ["interval", "regular", "temporal", "window"])
def test_rows_of_joins_evolve(tmp_path: Path, join: str) -> None:
    """The left rows get a column and a wider one, and the column of the key another name."""

    def joined(left: hw.Stream, right: hw.Stream) -> hw.Stream:
        if join == "window":
            pairs = left.join(right).where(left.schema.names[0]).equal_to("k").window(hw.tumbling("10 s")).apply()
        else:
            pairs = JOINS[join](left.key_by(left.schema.names[0]), right.key_by("k"))
        return pairs.with_uid("joined").select(f"{left.schema.names[0]} as k", "n", "n_right")

    parts = Parts(tmp_path, lambda a, b: joined(a.select("k", "cast(n as int) as n", "at"), b), "one", "two")
    wider = lambda a, b: joined(a.select("k as account", "n", "at", "'new' as tag"), b)  # noqa: E731
    state = "waiting" if join == "temporal" else "left"
    parts.is_refused(wider, f"joined/{state}: impossible (the key was k, is account)")
    parts.goes_on(wider, renamed={f"joined/{state}.k": "account"})


# -- state that evolves ------------------------------------------------------------------------------------------------


class Most(hw.AggregateFunction[Any, Any, Any]):
    def create(self) -> Any:
        return (0, 0)

    def add(self, accumulator: Any, value: int) -> Any:
        return (max(accumulator[0], value), accumulator[1] + 1, *(None for _ in accumulator[2:]))

    def result(self, accumulator: Any) -> Any:
        return accumulator[0] * 1000 + accumulator[1]


class MostAndMore(Most):
    def create(self) -> Any:
        return (0, 0, None)


class Before(hw.KeyedProcessFunction):
    value = hw.ValueState("struct<n: int, tag: string>")
    list = hw.ListState("int")
    map = hw.MapState("int", "struct<n: int>")
    most = hw.ReducingState("int", reduce=max)
    mean = hw.AggregatingState("struct<most: int, count: int>", aggregate=Most())

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.value.set((self.value.get().n + event.n if self.value.get() else event.n, "x"))
        self.list.add(event.n)
        self.map.put(event.n % 3, (event.n,))
        self.most.add(event.n)
        self.mean.add(event.n)
        kept = {entry: value.n for entry, value in self.map.items()}
        yield ctx.key, f"{self.value.get().n} {self.list.get()} {kept} {self.most.get()} {self.mean.get()}"


class After(hw.KeyedProcessFunction):
    """The same with wider numbers, a field more in each struct, one renamed and one dropped."""

    amount = hw.ValueState("struct<more: array<string>, total: bigint>")
    list = hw.ListState("bigint")
    map = hw.MapState("int", "struct<n: bigint, of: map<string, int>>")
    most = hw.ReducingState("decimal(20,0)", reduce=max)
    mean = hw.AggregatingState("struct<most: bigint, count: bigint, least: bigint>", aggregate=MostAndMore())

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.amount.set((None, self.amount.get().total + event.n if self.amount.get() else event.n))
        self.list.add(event.n)
        self.map.put(event.n % 3, (event.n, {"x": 1}))
        self.most.add(event.n)
        self.mean.add(event.n)
        kept = {entry: value.n for entry, value in self.map.items()}
        yield ctx.key, f"{self.amount.get().total} {self.list.get()} {kept} {self.most.get()} {self.mean.get()}"


def test_state_of_every_kind_evolves(tmp_path: Path) -> None:
    build = lambda s, function: s.key_by("k").process(function, "k string, what string").with_uid("all")  # noqa: E731
    parts = Parts(tmp_path, lambda s: build(s, Before()), parallelism=1)
    parts.is_refused(lambda s: build(s, After()), "all/value")
    renamed = {"all/value": "amount", "all/value.value.n": "total"}
    parts.goes_on(lambda s: build(s, After()), renamed=renamed)
    found = str(hw.savepoint.check(parts.path, env_of(lambda s: build(s, After()), hw.connectors.memory()), renamed))
    for line in (
        "was all/value; value.n renamed to 'total'; value.more added; value.n was int, is bigint; value.tag dropped",
        "all/list        migrated    value was int, is bigint",
        "all/map         migrated    value.n was int, is bigint; value.of added",
        "all/most        migrated    value was int, is decimal(20,0)",
    ):
        assert line in found


def test_state_that_becomes_narrower_or_of_another_kind_is_refused(tmp_path: Path) -> None:
    class Narrow(Before):
        list = hw.ListState("tinyint")
        most = hw.ValueState("int")

    build = lambda s, function: s.key_by("k").process(function, "k string, what string").with_uid("all")  # noqa: E731
    Parts(tmp_path, lambda s: build(s, Before())).is_refused(
        lambda s: build(s, Narrow()),
        "all/list: impossible (value was int, is tinyint)",
        "all/most: impossible (it was a reducing state, is a value state)",
    )


class Rules(hw.KeyedBroadcastFunction):
    total = hw.ValueState("bigint", default=0)

    def process_broadcast(self, row: Any, ctx: hw.BroadcastContext) -> None:
        ctx.broadcast_state("rules").put(row.k, (row.n,) if self.is_old else (row.n, None))

    def process(self, row: Any, ctx: hw.BroadcastContext) -> Any:
        self.total.set(self.total.get() + row.n)
        yield ctx.key, f"{self.total.get()} {[(key, rule.n) for key, rule in ctx.broadcast_state('rules').items()]}"

    def __init__(self, *, is_old: bool) -> None:
        self.is_old = is_old


def test_broadcast_state_evolves(tmp_path: Path) -> None:
    def build(rows: hw.Stream, rules: hw.Stream, dtype: str) -> hw.Stream:
        broadcast = rules.broadcast(hw.MapState("rules", "string", dtype))
        function = Rules(is_old=dtype == "struct<n: int>")
        return rows.key_by("k").connect(broadcast).process(function, "k string, what string").with_uid("ruled")

    old = lambda a, b: build(a, b, "struct<n: int>")  # noqa: E731
    parts = Parts(tmp_path, old, "one", "two")
    parts.goes_on(old)
    parts.goes_on(lambda a, b: build(a, b, "struct<n: bigint, why: string>"))
    parts.is_refused(lambda a, b: build(a, b, "struct<n: tinyint>"), "ruled/rules: impossible (value.n was int")


class Held(hw.ProcessFunction):
    """Every number, told when there are none to come."""

    def __init__(self) -> None:
        self.found: list[int] = []

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.numbers.add(event.n)
        if event.n == ROWS[-1][1]:
            yield str(sorted(self.numbers.get())), 0

    numbers = hw.OperatorListState("int")


class HeldMore(Held):
    numbers = hw.OperatorListState("bigint")


def test_operator_state_evolves(tmp_path: Path) -> None:
    build = lambda s, function: s.global_().process(function, "k string, n bigint").with_uid("held")  # noqa: E731
    parts = Parts(tmp_path, lambda s: build(s, Held()))
    parts.goes_on(lambda s: build(s, HeldMore()), parallelism=1)

    class Union(Held):
        numbers = hw.UnionListState("int")

    parts.is_refused(lambda s: build(s, Union()), "it was a operator_list state, is a union_list state")


def test_running_aggregates_go_on(tmp_path: Path) -> None:
    build = lambda s: s.key_by("k").agg(total=hw.sum("n"), all=hw.collect_list("n"), mean=hw.avg("n"))  # noqa: E731
    narrow = lambda s: build(s.select("k", "cast(n as int) as n"))  # noqa: E731
    parts = Parts(tmp_path, lambda s: narrow(s).with_uid("kept"))
    parts.goes_on(lambda s: narrow(s).with_uid("kept"))
    parts.is_refused(lambda s: s.key_by("k").agg(total=hw.sum("n")).with_uid("kept"), "aggregates was")


def test_windows_that_keep_rows_evolve(tmp_path: Path) -> None:
    def build(stream: hw.Stream) -> hw.Stream:
        return stream.key_by("k").window(hw.session("3 s")).process(All(), "k string, n bigint").with_uid("all")

    parts = Parts(tmp_path, lambda s: build(s.select("k", "cast(n as int) as n")))
    parts.goes_on(lambda s: build(s.select("k", "'new' as tag", "n")))
    parts.is_refused(lambda s: build(s.select("k", "cast(n as tinyint) as n")), "value.row.n was int, is tinyint")


def test_a_step_that_has_kept_nothing_may_become_anything(tmp_path: Path) -> None:
    def build(stream: hw.Stream, size: str) -> hw.Stream:
        silent = stream.where("n < 0").key_by("k").window(hw.tumbling(size)).agg(total=hw.sum("n"), rows=hw.count())
        return silent.with_uid("silent").union(sums(stream))

    Parts(tmp_path, lambda s: build(s, "1 s")).goes_on(lambda s: build(s, "7 s"))
