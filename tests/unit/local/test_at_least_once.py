"""At-least-once: sinks get an epoch before it is committed, and after a failure again."""

from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.connectors.contract import Sink, Staged, read_staged


class Seen(Sink):
    """Keeps whatever it is given, as often as it is given."""

    def __init__(self) -> None:
        self.given: list[tuple[int, list[int]]] = []

    def describe(self) -> str:
        return "seen"

    def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
        """Nothing to open."""

    def publish(self, epoch: int, files: list[Staged]) -> None:
        self.given.append((epoch, [n for file in files for n in read_staged(file)["n"].to_pylist()]))

    @property
    def rows(self) -> list[int]:
        return [n for _, rows in self.given for n in rows]


def job(sink: Any, **settings: Any) -> hw.Environment:
    settings = {"checkpointing": "at_least_once", "max_rows_per_epoch": 4, **settings}
    env = hw.Environment("job", engine="local", **settings)
    env.from_rows([(n,) for n in range(10)], "n long").rebalance().map(lambda r: r).sink(sink, name="out")
    return env


def test_rows_are_there_before_the_commit() -> None:
    told: list[tuple[str, int]] = []
    for mode in ("exactly_once", "at_least_once"):
        sink = Seen()

        def look(step: hw.EpochStep, epoch: int, sink: Seen = sink, mode: str = mode) -> None:
            if step is hw.EpochStep.COMMITTED:
                told.append((mode, sum(len(rows) for at, rows in sink.given if at == epoch)))

        job(sink, checkpointing=mode).run(on_step=look)
        assert sorted(sink.rows) == list(range(10))
    assert told == [("exactly_once", 0)] * 3 + [("at_least_once", n) for n in (4, 4, 2)]


def test_the_steps_of_an_epoch_are_told_in_the_order_they_happen() -> None:
    told: list[str] = []
    job(Seen(), max_rows_per_epoch=100).run(on_step=lambda step, _: told.append(step.name))
    assert told == ["PLANNED", "STAGED", "MANIFEST", "PUBLISHING", "PUBLISHED", "COMMITTED", "CLEANED"]


def test_a_failure_between_publication_and_commit_doubles_and_loses_nothing() -> None:
    failed: list[int] = []

    def fail(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PUBLISHED and epoch not in failed:
            failed.append(epoch)
            raise OSError("it dies here")

    restart = hw.restart.fixed(10, delay="0 ms")
    sink, knows_epochs = Seen(), hw.connectors.memory()
    env = job(sink, restart=restart)
    env.from_rows([(n,) for n in range(10)], "n long", name="more").sink(knows_epochs, name="memory")
    env.run(on_step=fail)
    assert failed == [0, 1, 2]
    assert sorted(sink.rows) == sorted([*range(10), *range(10)])
    assert [row.n for row in knows_epochs.rows] == list(range(10)), "a sink that knows epochs drops the repetition"


def test_an_epoch_that_failed_is_computed_again_from_the_same_offset() -> None:
    """A sink that drops the repetition has what the first attempt gave: there must be no more in the second."""
    sink = hw.connectors.memory()
    env = hw.Environment(
        "job",
        engine="local",
        checkpointing="at_least_once",
        checkpoint_interval="1 ms",
        restart=hw.restart.fixed(10, delay="0 ms"),
    )
    source = hw.testing.TimedRows([[(at, (at,)) for at in range(0, 100, 10)]], "n long")
    env.source(source, "n long").sink(sink)
    now, failed = [0], list[int]()

    def clock(epoch: int) -> int:
        now[0] += 10  # time goes on, also between attempts
        return now[0]

    def fail(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PUBLISHED and epoch not in failed:
            failed.append(epoch)
            raise OSError("it dies here")

    env.run(clock=clock, on_step=fail)
    assert len(failed) > 5
    assert [row.n for row in sink.rows] == list(range(0, 100, 10))


def test_the_guarantees_say_so_and_why() -> None:
    env = job(hw.connectors.memory(), restart=hw.restart.fixed(1))
    assert [path.guarantee for path in env.guarantees()] == [hw.Guarantee.AT_LEAST_ONCE]
    assert env.explain_guarantees().endswith(
        "  sink out (memory): it gets an epoch before the epoch is committed, and again when it fails and is computed again"
    )


@pytest.mark.filterwarnings("error::headwater.GuaranteeWarning")
def test_a_job_that_is_to_be_at_least_once_does_not_warn_of_it_but_of_less() -> None:
    job(hw.connectors.memory(), restart=hw.restart.fixed(1)).run()

    class Lossy(Seen):
        guarantee = hw.Guarantee.AT_MOST_ONCE

    env = job(Lossy(), restart=hw.restart.fixed(1))
    assert [path.guarantee for path in env.guarantees()] == [hw.Guarantee.NONE]
    with pytest.raises(hw.GuaranteeWarning, match="is not at-least-once on all paths: rows -> out is no guarantee"):
        env.run()


def test_another_mode_is_refused() -> None:
    with pytest.raises(hw.GraphError, match="checkpoints exactly_once or at_least_once; got 'never'"):
        hw.Environment("job", checkpointing="never")
