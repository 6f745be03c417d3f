"""The epoch protocol, driven by a tiny engine: two rows an epoch, and a file for each epoch that is committed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.connectors.contract import Positions, Sink, Staged
from headwater.connectors.memory import MemorySink, RowsSource
from headwater.epoch.outbox import stage
from headwater.epoch.protocol import MAX_UNPUBLISHED, Claim, Computed, EpochProtocol
from headwater.epoch.reports import TaskReport
from headwater.epoch.steps import EpochStep, OnStep, ignore_steps
from headwater.plan.plan import JobPlan, plan_job
from headwater.savepoints.files import Savepoint
from headwater.savepoints.origin import Origin
from headwater.savepoints.renaming import Renaming
from headwater.task.payload import EpochFacts
from headwater.task.split import SplitHost

ROWS, AN_EPOCH = 20, 2
EPOCHS = ROWS // AN_EPOCH
SCHEMA = hw.Schema.of("n long")
STEPS = list(EpochStep)


class Killed(BaseException):
    """The process is gone."""


class ToldSource(RowsSource):
    """Notes what it is told."""

    def __init__(self, told: list[str]) -> None:
        super().__init__([[(n,) for n in range(ROWS)]], SCHEMA)
        self._told = told

    def check(self, schema: hw.Schema) -> None:
        self._told.append("check")

    def published(self, positions: Positions) -> None:
        self._told.append(f"read to {positions['0']}")


class ToldSink(MemorySink):
    """Notes what it is told."""

    def __init__(self, name: str, told: list[str]) -> None:
        super().__init__()
        self._name, self._told = name, told

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        self._told.append(f"take over {self._name} after {epoch}")

    def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
        super().open(uid, job_id, schema, resumed=resumed)
        self._told.append(f"open {self._name}, {'resumed' if resumed else 'new'}")

    def publish(self, epoch: int, files: list[Staged]) -> None:
        super().publish(epoch, files)
        self._told.append(f"publish {epoch} to {self._name}")

    def flush(self) -> None:
        self._told.append(f"flush {self._name}")

    def close(self) -> None:
        self._told.append(f"close {self._name}")


class Engine:
    """What an engine is beside the protocol: a log of commits, and tasks."""

    def __init__(self, folder: Path, plan: JobPlan, on_step: OnStep = ignore_steps, **settings: Any) -> None:
        self.protocol = EpochProtocol(plan, self, on_step)
        self.told: list[str] = settings.get("told", [])
        self._plan, self._origin = plan, settings.get("origin")
        self._outbox, self._commits, self._sources = folder / "outbox", folder / "commits", folder / "sources"

    def claim(self, origin: Origin | None) -> Claim:
        self.told.append("claim")
        resumed = self._commits.exists()
        for path in (self._outbox, self._commits):
            path.mkdir(exist_ok=True)
        return Claim("job", origin, resumed, self._outbox)

    def is_committed(self, epoch: int) -> bool:
        return (self._commits / str(epoch)).exists()

    def recovered(self, epoch: int | None) -> None:
        self.told.append(f"recovered to {epoch}")

    def admit(self, epoch: int, what: Computed) -> None:
        """Every epoch may be committed."""

    def computed(self, epoch: int, what: Computed) -> None:
        self.told.append(f"computed {epoch}, to {what.positions['rows']['0']}")

    def handed_over(self, epoch: int) -> None:
        self.told.append(f"handed over {epoch}")

    def begin(self) -> None:
        self.protocol.begin(self._sources, self._origin, is_new=not self._commits.exists())
        self.protocol.recover(again=False)

    def prepare(self, epoch: int) -> None:
        self.protocol.prepare(epoch, lambda: self._compute(epoch))

    def commit(self, epoch: int) -> None:
        self.told.append(f"commit {epoch}")
        (self._commits / str(epoch)).touch()

    def run(self) -> None:
        """A whole job, on one thread."""
        self.begin()
        self.go_on()
        self.protocol.flush()
        self.protocol.close()

    def go_on(self) -> None:
        first = self.protocol.first_epoch
        for epoch in range(first, first + EPOCHS):
            if not self.is_committed(epoch):
                self.prepare(epoch)
                self.commit(epoch)
                self.protocol.publish_committed()

    def _compute(self, epoch: int) -> Computed:
        self.told.append(f"compute {epoch}")
        start = AN_EPOCH * (epoch - self.protocol.first_epoch)
        end, ended = start + AN_EPOCH, start + AN_EPOCH == ROWS
        (node,) = self._plan.sources()
        *_, last = SplitHost(self._plan, node, "0").run(start, end, EpochFacts(epoch, 1000 + epoch), ended=ended)
        staged = stage(self._plan, self._outbox, epoch, "s0000", last.sink_batches)
        positions = {"rows": {"0": end}}
        return Computed([TaskReport(tuple(staged), last.steps, positions)], positions, 1000 + epoch, ended)


def plan_of(*sinks: Sink, told: list[str] | None = None, early: bool = False) -> JobPlan:
    env = hw.Environment("job", engine="local")
    rows = env.source(ToldSource([] if told is None else told), SCHEMA, name="rows")
    for number, sink in enumerate(sinks):
        rows.sink(sink, name=f"sink{number}")
    return plan_job(env.graph, 1, 128, publishes_early=early)


def files_in(tmp_path: Path) -> Sink:
    return hw.connectors.files(tmp_path / "out", format="json")


def rows_in(tmp_path: Path) -> list[int]:
    files = sorted((tmp_path / "out").glob("*.jsonl"))
    return [json.loads(line)["n"] for path in files for line in path.read_text().splitlines()]


def left_in(tmp_path: Path) -> list[str]:
    """What is there of epochs that are not done with."""
    found = [*(tmp_path / "outbox").iterdir(), *(tmp_path / "out" / "_headwater" / "staging").iterdir()]
    return sorted(path.name for path in found if path.name != "published.json")


def dies_at(step: EpochStep, epoch: int) -> OnStep:
    def die(at: EpochStep, of: int) -> None:
        if (at, of) == (step, epoch):
            raise Killed

    return die


def told_in(told: list[str]) -> OnStep:
    return lambda step, epoch: told.append(f"{step.value} {step.name} {epoch}")


def origin_in(tmp_path: Path) -> Origin:
    """A savepoint of the same program, after its only epoch."""
    env = hw.Environment("before", engine="local")
    env.source(ToldSource([]), SCHEMA, name="rows").sink(hw.connectors.memory(), name="sink0")
    job = env.start()
    job.wait()
    path = job.savepoint(tmp_path / "savepoint")
    return Origin.of(Savepoint.open(path), Renaming())


def test_the_whole_order(tmp_path: Path) -> None:
    told: list[str] = []
    plan = plan_of(ToldSink("a", told), ToldSink("b", told), told=told)
    Engine(tmp_path, plan, told_in(told), told=told, origin=origin_in(tmp_path)).run()
    one = told.index("1 PLANNED 2")
    assert told[:one] == [
        *("check", "claim"),
        *("take over a after 0", "take over b after 0", "open a, resumed", "open b, resumed", "recovered to None"),
        *("1 PLANNED 1", "compute 1", "2 STAGED 1", "3 MANIFEST 1", "computed 1, to 2", "commit 1", "4 COMMITTED 1"),
        *("publish 1 to a", "5 PUBLISHING 1", "publish 1 to b", "5 PUBLISHING 1", "6 PUBLISHED 1", "handed over 1"),
        *("7 CLEANED 1", "read to 2"),
    ]
    assert told[-6:] == [f"7 CLEANED {EPOCHS}", f"read to {ROWS}", "flush a", "flush b", "close a", "close b"]


def test_a_job_that_is_at_least_once_publishes_before_it_commits(tmp_path: Path) -> None:
    told: list[str] = []

    def look(step: EpochStep, epoch: int) -> None:
        if epoch == 0:
            told.append(f"{step.name}, published {engine.protocol.published}")

    engine = Engine(tmp_path, plan_of(ToldSink("a", told), early=True), look, told=told)
    engine.run()
    of_epoch = told[told.index("PLANNED, published -1") : told.index("compute 1")]
    assert of_epoch == [
        *("PLANNED, published -1", "compute 0", "STAGED, published -1", "MANIFEST, published -1", "publish 0 to a"),
        *("PUBLISHING, published -1", "PUBLISHED, published -1", "handed over 0", "computed 0, to 2", "commit 0"),
        *("COMMITTED, published -1", "CLEANED, published 0"),
    ]


@pytest.mark.parametrize("early", [False, True], ids=["exactly_once", "at_least_once"])
@pytest.mark.parametrize("step", STEPS)
def test_killed_after_any_step_every_row_is_published_once(step: EpochStep, early: bool, tmp_path: Path) -> None:
    """Sinks that know epochs drop the repetitions of a job that is at-least-once."""
    memory = hw.connectors.memory()
    for epoch in (0, 4, EPOCHS - 1):
        engine = Engine(tmp_path, plan_of(files_in(tmp_path), memory, early=early), dies_at(step, epoch))
        with pytest.raises(Killed):
            engine.run()
    Engine(tmp_path, plan_of(files_in(tmp_path), memory, early=early)).run()
    assert rows_in(tmp_path) == [row.n for row in memory.rows] == list(range(ROWS))
    assert left_in(tmp_path) == []


@pytest.mark.parametrize("step", STEPS)
def test_an_attempt_that_failed_after_any_step_is_followed_by_another(step: EpochStep, tmp_path: Path) -> None:
    told: list[str] = []
    failed: list[int] = []

    def fail(at: EpochStep, epoch: int) -> None:
        if at == step and epoch not in failed:
            failed.append(epoch)
            raise OSError("it fails here")

    engine = Engine(
        tmp_path, plan_of(files_in(tmp_path), ToldSink("a", told)), fail, told=told, origin=origin_in(tmp_path)
    )
    engine.begin()
    while not engine.is_committed(EPOCHS) or engine.protocol.published < EPOCHS:
        try:
            engine.go_on()
        except OSError:
            engine.protocol.recover(again=True)
    assert rows_in(tmp_path) == list(range(ROWS))
    assert left_in(tmp_path) == []
    assert len(failed) == told.count("open a, resumed") - 1 == EPOCHS
    assert told.count("take over a after 0") == 1, "what another job has taken since is that job's"


@pytest.mark.parametrize("step", [EpochStep.PUBLISHING, EpochStep.PUBLISHED, EpochStep.CLEANED])
def test_killed_in_recovery_every_row_is_published_once(step: EpochStep, tmp_path: Path) -> None:
    plan = plan_of(files_in(tmp_path))
    with pytest.raises(Killed):
        Engine(tmp_path, plan, dies_at(EpochStep.COMMITTED, 3)).run()
    with pytest.raises(Killed):
        Engine(tmp_path, plan_of(files_in(tmp_path)), dies_at(step, 3)).begin()
    Engine(tmp_path, plan_of(files_in(tmp_path))).run()
    assert rows_in(tmp_path) == list(range(ROWS))


def test_sources_are_told_of_what_recovery_publishes(tmp_path: Path) -> None:
    memory = hw.connectors.memory()
    last = EPOCHS - 1
    with pytest.raises(Killed):
        Engine(tmp_path, plan_of(memory), dies_at(EpochStep.COMMITTED, last)).run()
    told: list[str] = []
    Engine(tmp_path, plan_of(memory, told=told), told=told).run()
    assert told == ["check", "claim", f"handed over {last}", f"read to {ROWS}", f"recovered to {last}"]


def test_what_is_not_committed_is_discarded_with_its_files(tmp_path: Path) -> None:
    engine = Engine(tmp_path, plan_of(files_in(tmp_path)))
    engine.begin()
    for epoch in (0, 1):
        engine.prepare(epoch)
    engine.commit(0)
    again = Engine(tmp_path, plan_of(files_in(tmp_path)))
    again.begin()
    assert (again.protocol.published, left_in(tmp_path), rows_in(tmp_path)) == (0, [], [0, 1])


def test_epochs_are_published_in_order_up_to_the_first_that_is_not_committed(tmp_path: Path) -> None:
    engine = Engine(tmp_path, plan_of(files_in(tmp_path)))
    engine.begin()
    for epoch in range(4):
        engine.prepare(epoch)
    for epoch in (0, 1, 3):
        engine.commit(epoch)
    engine.protocol.publish_committed()
    assert rows_in(tmp_path) == list(range(4))
    engine.commit(2)
    engine.protocol.publish_committed()
    assert rows_in(tmp_path) == list(range(8))


def test_input_that_is_refused_leaves_no_claim(tmp_path: Path) -> None:
    class Refusing(ToldSource):
        def check(self, schema: hw.Schema) -> None:
            raise hw.SourceError("no such input")

    env = hw.Environment("job", engine="local")
    env.source(Refusing([]), SCHEMA, name="rows").sink(hw.connectors.memory())
    engine = Engine(tmp_path, plan_job(env.graph, 1, 128))
    with pytest.raises(hw.SourceError, match="no such input"):
        engine.begin()
    assert engine.told == []


class Other:
    """The other thread of an engine that prepares on one and publishes on another."""

    def __init__(self, work: Callable[[], None]) -> None:
        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    def goes_on(self) -> bool:
        """Whether it waits; what needs no waiting is done long before."""
        self._thread.join(0.2)
        return self._thread.is_alive()

    def end(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive()


def test_an_epoch_waits_while_too_many_are_unpublished(tmp_path: Path) -> None:
    told: list[str] = []
    engine = Engine(tmp_path, plan_of(hw.connectors.memory()), told_in(told))
    engine.begin()
    for epoch in range(MAX_UNPUBLISHED):
        engine.prepare(epoch)
    other = Other(lambda: engine.prepare(MAX_UNPUBLISHED))
    assert other.goes_on()
    assert told[-1] == f"3 MANIFEST {MAX_UNPUBLISHED - 1}"
    engine.commit(0)
    engine.protocol.publish_committed()
    other.end()
    assert told.index("7 CLEANED 0") < told.index(f"1 PLANNED {MAX_UNPUBLISHED}")


def test_an_epoch_that_waits_goes_on_when_nobody_publishes_any_more(tmp_path: Path) -> None:
    engine = Engine(tmp_path, plan_of(files_in(tmp_path)))
    engine.begin()
    for epoch in range(MAX_UNPUBLISHED):
        engine.prepare(epoch)
    other = Other(lambda: engine.prepare(MAX_UNPUBLISHED))
    assert other.goes_on()
    engine.protocol.give_up()
    other.end()
    engine.protocol.recover(again=True)
    engine.go_on()
    assert rows_in(tmp_path) == list(range(ROWS))


def test_epochs_are_prepared_while_a_sink_works(tmp_path: Path) -> None:
    """The sink has the first epoch only when the second is prepared: no lock is held meanwhile."""
    is_prepared = threading.Event()

    class Slow(MemorySink):
        def publish(self, epoch: int, files: list[Staged]) -> None:
            assert is_prepared.wait(30)
            super().publish(epoch, files)

    sink = Slow()
    engine = Engine(tmp_path, plan_of(sink))
    engine.begin()
    engine.prepare(0)
    engine.commit(0)
    publisher = Other(engine.protocol.publish_committed)
    engine.prepare(1)
    is_prepared.set()
    publisher.end()
    assert [row.n for row in sink.rows] == [0, 1]


def test_a_sink_that_fails_is_named_and_leaves_the_epoch_to_be_published(tmp_path: Path) -> None:
    class Failing(MemorySink):
        fails = True

        def publish(self, epoch: int, files: list[Staged]) -> None:
            if self.fails:
                raise ConnectionError("no route")
            super().publish(epoch, files)

        def flush(self) -> None:
            raise ConnectionError("still no route")

    sink = Failing()
    engine = Engine(tmp_path, plan_of(sink))
    with pytest.raises(hw.PublishError, match="'sink0' could not publish epoch 0: ConnectionError: no route"):
        engine.run()
    sink.fails = False
    engine.protocol.recover(again=True)
    assert [row.n for row in sink.rows] == [0, 1]
    with pytest.raises(hw.PublishError, match="'sink0' could not publish epoch 0: ConnectionError: still no route"):
        engine.protocol.flush()


def test_a_staged_file_removed_from_outside_is_told(tmp_path: Path) -> None:
    engine = Engine(tmp_path, plan_of(files_in(tmp_path)))
    engine.begin()
    engine.prepare(0)
    engine.commit(0)
    for path in (tmp_path / "out" / "_headwater" / "staging").iterdir():
        path.unlink()
    with pytest.raises(hw.PublishError, match="neither there nor published"):
        engine.protocol.publish_committed()
    assert left_in(tmp_path) == ["manifest-0000000000.json"]


def test_rows_of_a_sink_that_the_program_no_longer_has_are_told(tmp_path: Path) -> None:
    engine = Engine(tmp_path, plan_of(files_in(tmp_path), hw.connectors.memory()))
    engine.begin()
    engine.prepare(0)
    engine.commit(0)
    with pytest.raises(hw.PublishError, match="sink1"):
        Engine(tmp_path, plan_of(files_in(tmp_path))).begin()
