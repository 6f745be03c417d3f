"""Upgrades tried out before anything is started."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw

SCHEMA = "k string, n int"


class Old(hw.KeyedProcessFunction):
    total = hw.ValueState("int", default=0)
    seen = hw.ListState("int")
    gone = hw.ValueState("string")
    never = hw.ListState("int")

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        self.seen.add(event.n)
        self.gone.set(event.k)
        yield event


class New(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)
    seen = hw.ListState("int")
    never = hw.ValueState("string")
    fresh = hw.ValueState("int")

    def open(self) -> None:
        raise AssertionError("a check opens nothing")


class Wrong(hw.KeyedProcessFunction):
    total = hw.ListState("int")
    seen = hw.ListState("string")
    gone = hw.ValueState("string")


def env_of(function: Any, uid: str = "step", source: str = "rows") -> hw.Environment:
    env = hw.Environment("upgraded", engine="local", max_rows_per_epoch=1)
    stream = env.from_rows([("a", 1), ("b", 2)], SCHEMA, name=source)
    stream.key_by("k").process(function, SCHEMA).with_uid(uid).sink(hw.connectors.memory())
    return env


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    return run_epochs(env_of(Old()), 1).savepoint(tmp_path / "sp")  # type: ignore[no-any-return]


def test_the_same_program_keeps_all(savepoint: Path) -> None:
    found = hw.savepoint.check(savepoint, env_of(Old()))
    assert str(found).splitlines() == [
        "rows/@position  kept",
        "step/gone       kept",
        "step/seen       kept",
        "step/total      kept",
        "step/never      new         it was empty",
        "the program can go on from the savepoint",
    ]
    assert (found.exit_code, found.is_possible) == (0, True)


def test_every_change_is_told(savepoint: Path) -> None:
    found = hw.savepoint.check(savepoint, env_of(New()))
    assert str(found).splitlines() == [
        "rows/@position  kept",
        "step/gone       dropped     the step has no such state",
        "step/seen       kept",
        "step/total      migrated    value was int, is bigint",
        "step/never      new         it was empty",
        "step/fresh      new",
        "the program can go on from the savepoint with allow_dropped_state=True",
    ]
    assert (found.exit_code, found.is_possible) == (3, True)
    assert [str(fit) for fit in found.of(hw.savepoint.Fate.DROPPED)] == [
        "step/gone: dropped (the step has no such state)"
    ]


def test_what_cannot_be_is_told_all_at_once(savepoint: Path) -> None:
    found = hw.savepoint.check(savepoint, env_of(Wrong()))
    assert [(fit.state, fit.how) for fit in found.of(hw.savepoint.Fate.IMPOSSIBLE)] == [
        ("seen", "value was int, is string"),
        ("total", "it was a value state, is a list state"),
    ]
    assert (found.exit_code, found.is_possible) == (1, False)
    with pytest.raises(
        hw.SavepointError, match=r"cannot go on from the savepoint .*:\n  - step/seen: .*\n  - step/total"
    ):
        env_of(Wrong()).run(from_=savepoint)


def test_another_uid_is_another_step_unless_it_was_renamed(savepoint: Path) -> None:
    other = env_of(Old(), uid="other", source="lines")
    found = hw.savepoint.check(savepoint, other)
    assert {str(fit.fate) for fit in found.fits} == {"dropped", "new"}
    found = hw.savepoint.check(savepoint, other, {"step": "other", "rows": "lines"})
    assert str(found).splitlines()[:2] == [
        "lines/@position  kept        was rows",
        "other/gone       kept        was step/gone",
    ]
    assert found.exit_code == 0


@pytest.mark.parametrize(
    ("renamed", "why"),
    [
        ({"stop": "step"}, "names no step of the savepoint, which has rows, step"),
        ({"step/sum": "total"}, "names no state of it, which has @channels, .*total"),
        ({"rows/x": "y"}, "names no state of it"),
        ({"step": "stop"}, "needs a step of the program that nothing else becomes; the program has rows, step"),
        ({"rows": "step"}, "needs a step of the program that nothing else becomes"),
        ({"step/total": "sum"}, "needs a state of the step that nothing else becomes; the program has total"),
        ({"step/gone": "total"}, "needs a state of the step that nothing else becomes"),
        ({"step": "a/b"}, "names nothing new: 'a/b'"),
    ],
)
def test_a_renaming_that_is_a_mistake_is_refused(savepoint: Path, renamed: dict[str, str], why: str) -> None:
    with pytest.raises(hw.SavepointError, match=rf"renamed={{.*}} {why}.*; write 'step', 'step/state'"):
        hw.savepoint.check(savepoint, env_of(Old()), renamed)


def test_a_savepoint_of_the_end_is_told(tmp_path: Path) -> None:
    path = env_of(Old()).run().savepoint(tmp_path / "sp")
    assert "event time is at its end, and every row to come with a time is late" in str(
        hw.savepoint.check(path, env_of(Old()))
    )


HERE = "tests.unit.savepoints.tables.test_checking"
