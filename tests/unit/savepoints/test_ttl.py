"""A ttl that comes, goes or changes between two programs, with a savepoint between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.job.identity import differences, shape_of

SCHEMA = "k string, n int"
ROWS = [("a", 1), ("a", 2), ("b", 3), ("a", 4)]


def function(ttl: hw.Ttl | None) -> Any:
    class Kept(hw.KeyedProcessFunction):
        total = hw.ValueState("int", default=0, ttl=ttl)
        seen = hw.ListState("int", ttl=ttl)
        at = hw.MapState("int", "int", ttl=ttl)

        def process(self, event: Any, ctx: hw.Context) -> Any:
            self.total.set(self.total.get() + event.n)
            self.seen.add(event.n)
            self.at.put(event.n, event.n)
            yield event.k, str([self.total.get(), self.seen.get(), self.at.keys()])

    return Kept()


def env_of(ttl: hw.Ttl | None, sink: Any = None) -> hw.Environment:
    env = hw.Environment("lasting", engine="local", max_rows_per_epoch=1)
    rows = env.from_rows(ROWS, SCHEMA).key_by("k")
    step = rows.process(function(ttl), "k string, what string").with_uid("step")
    step.sink(sink or hw.connectors.memory(), name="out")
    return env


def saved(ttl: hw.Ttl | None, path: Path) -> Path:
    """A savepoint after two rows, of the times 1000 and 2000."""
    return run_epochs(env_of(ttl), 2, clock=lambda n: 1000 * (n + 1)).savepoint(path)  # type: ignore[no-any-return]


def with_two_inputs(kind: str, ttl: hw.Ttl | None) -> hw.Environment:
    """The function beside a second input of which nothing is kept: connected to it, or with it broadcast."""

    class Connected(hw.CoProcessFunction):
        total = hw.ValueState("int", default=0, ttl=ttl)

        def process_left(self, event: Any, ctx: hw.Context) -> Any:
            self.total.set(self.total.get() + event.n)
            yield event.k, self.total.get()

        def process_right(self, event: Any, ctx: hw.Context) -> Any: ...

    class BesideRules(hw.KeyedBroadcastFunction):
        total = hw.ValueState("int", default=0, ttl=ttl)

        def process(self, event: Any, ctx: hw.Context) -> Any:
            self.total.set(self.total.get() + event.n)
            yield event.k, self.total.get()

        def process_broadcast(self, event: Any, ctx: Any) -> Any: ...

    env = hw.Environment("two", engine="local", max_rows_per_epoch=1)
    rows, other = (env.from_rows(ROWS, SCHEMA, name=name) for name in ("rows", "other"))
    if kind == "connected":
        step = rows.key_by("k").connect(other.key_by("k")).process(Connected(), SCHEMA)
    else:
        rules = other.broadcast(hw.MapState("rules", "string", "int"))
        step = rows.key_by("k").connect(rules).process(BesideRules(), SCHEMA)
    step.with_uid("step").sink(hw.connectors.memory(), name="out")
    return env


HOUR, DAY, EVENT = hw.ttl("1 h"), hw.ttl("1 d"), hw.ttl("1 h", clock="event")


CHANGES = pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, HOUR, "migrated    expires 1 h of processing time after it was last written, counted from the start"),
        (HOUR, None, "migrated    expires no more, was 1 h of processing time after it was last written"),
        (HOUR, DAY, "migrated    expires 1 d of processing time after it was last written, was 1 h of processing time"),
        (HOUR, EVENT, "migrated    expires 1 h of event time after it was last written, was 1 h of processing time"),
        (HOUR, HOUR, "kept"),
    ],
)


@CHANGES
def test_a_check_tells_what_becomes_of_a_ttl(
    tmp_path: Path, before: hw.Ttl | None, after: hw.Ttl | None, told: str
) -> None:
    found = str(hw.savepoint.check(saved(before, tmp_path / "sp"), env_of(after)))
    lines = [line for line in found.splitlines() if line.startswith("step/")]
    assert [line.split()[0] for line in lines] == ["step/at", "step/seen", "step/total"]
    assert all(told in line and "@" not in line for line in lines)


@pytest.mark.parametrize("kind", ["connected", "broadcast"])
@CHANGES
def test_a_check_tells_it_of_functions_with_two_inputs(
    tmp_path: Path, kind: str, before: hw.Ttl | None, after: hw.Ttl | None, told: str
) -> None:
    job = run_epochs(with_two_inputs(kind, before), 2, clock=lambda n: 1000 * (n + 1))
    found = str(hw.savepoint.check(job.savepoint(tmp_path / "sp"), with_two_inputs(kind, after)))
    (line,) = (line for line in found.splitlines() if line.startswith("step/total"))
    assert told in line


def results(path: Path, ttl: hw.Ttl | None, clock: Any) -> list[str]:
    sink = hw.connectors.memory()
    env = env_of(ttl, sink)
    env.run(from_=path, bounded=True, clock=clock)
    return [row.what for row in sink.rows]


def test_state_that_gets_a_ttl_lasts_from_the_start_on(tmp_path: Path) -> None:
    path = saved(None, tmp_path / "sp")
    late = 10_000_000
    assert results(path, hw.ttl("5 s"), lambda n: late + 2000 * n)[-1] == "[7, [1, 2, 4], [1, 2, 4]]"
    assert results(path, hw.ttl("1 s"), lambda n: late + 2000 * n)[-1] == "[4, [4], [4]]"


def test_a_ttl_that_changes_counts_from_the_times_that_are_there(tmp_path: Path) -> None:
    path = saved(hw.ttl("1 h"), tmp_path / "sp")
    assert results(path, hw.ttl("1 h"), lambda n: 5000)[-1] == "[7, [1, 2, 4], [1, 2, 4]]"
    assert results(path, hw.ttl("3500 ms"), lambda n: 5000)[-1] == "[7, [2, 4], [2, 4]]"
    assert results(path, hw.ttl("2 s"), lambda n: 5000)[-1] == "[4, [4], [4]]"


def test_without_its_ttl_state_is_there_for_ever(tmp_path: Path) -> None:
    path = saved(hw.ttl("1 h"), tmp_path / "sp")
    assert results(path, None, lambda n: 10**12 * (n + 1))[-1] == "[7, [1, 2, 4], [1, 2, 4]]"


def test_times_can_be_read_and_written_and_left_out(tmp_path: Path) -> None:
    path = saved(HOUR, tmp_path / "sp")
    saved_job = hw.savepoint.read(path)
    assert saved_job["step", "seen"].to_arrow().to_pylist() == [
        {"key": "a", "index": 0, "value": 1, "@processing_ms": 1000},
        {"key": "a", "index": 1, "value": 2, "@processing_ms": 2000},
    ]
    given = {
        ("step", "total"): [{"key": "a", "value": 10}],
        ("step", "at"): [
            {"key": "a", "entry": 7, "value": 7, "@processing_ms": 4000},
            {"key": "a", "entry": 8, "value": 8, "@processing_ms": 1},
        ],
    }
    hw.savepoint.write(tmp_path / "other", env_of(HOUR), given, base=path)
    assert results(tmp_path / "other", hw.ttl("2 s"), lambda n: 5000)[-1] == "[14, [4], [7, 4]]"


def test_a_job_comes_back_with_a_longer_ttl_but_not_with_a_new_one() -> None:
    without, hour, day = (shape_of(env_of(ttl).plan()) for ttl in (None, HOUR, DAY))
    assert differences(hour, day) == []
    assert "with times of processing time" in differences(without, hour)[0]
