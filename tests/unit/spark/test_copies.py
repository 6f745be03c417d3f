"""Workers of a run use the copy of a subtask that one of them holds; whatever becomes of that one, state is exact."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.data.batch import Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.errors import HeadwaterError, UserCodeError
from headwater.plan.plan import JobPlan, plan_job
from headwater.spark.copies import neighbours
from headwater.spark.copies.computed import Place
from headwater.spark.copies.held import Copies
from headwater.spark.shipped import ShippedJob
from headwater.state.changelog import MemoryRecordStore, catch_up
from headwater.task.host import LevelHost
from headwater.task.outlet import Outlet
from headwater.task.payload import EpochFacts

ROWS = Schema.of("k bigint, v bigint")
FIRST, SECOND = Place(1, 0), Place(1, 1)
BAD = -1
"""A value that the function does not take."""


class Keeper(hw.KeyedProcessFunction):
    """Sums; opens something that belongs to a thread; waits as long as a file says so; fails for a value."""

    total = hw.ValueState("bigint", default=0)

    def __init__(self, waits: str) -> None:
        self._waits = waits

    def open(self) -> None:
        self._thread = threading.get_ident()

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        assert self._thread == threading.get_ident(), "what is opened in a thread is used in it"
        if event.v == BAD:
            raise ValueError("a value that nobody takes")
        while Path(self._waits).exists():
            Path(f"{self._waits}.{os.getpid()}").touch()
            time.sleep(0.01)
        self.total.set(self.total.get() + event.v)
        yield {"k": event.k, "total": self.total.get()}


def plan_of(folder: Path) -> JobPlan:
    env = hw.Environment("copies", engine="local", parallelism=2)
    summed = env.from_rows([], ROWS).key_by("k").process(Keeper(str(folder / "wait")), "k bigint, total bigint")
    summed.sink(hw.connectors.memory())
    return plan_job(env.graph, 2, 128)


def payloads_of(plan: JobPlan, epoch: int, place: Place, values: list[int]) -> list[bytes]:
    """What a subtask gets in an epoch: rows of many keys."""
    outlet = Outlet.behind(plan, plan.sources()[0])
    outlet.begin(EpochFacts(epoch, epoch), "rows/0")
    rows = [(key, value) for key, value in enumerate(values)]
    outlet.emit(None, Batch(encode_rows(rows, ROWS.arrow, "rows"), timestamp_array(range(len(rows)))))
    return [data for subtask, data in outlet.finish(0) if subtask == place.subtask]


@dataclass
class Stores:
    """The committed changelogs, which all workers can read; in a folder."""

    folder: Path

    def of(self, place: Place) -> MemoryRecordStore:
        file = self._file(place)
        return pickle.loads(file.read_bytes()) if file.exists() else MemoryRecordStore()

    def commit(self, place: Place, store: MemoryRecordStore) -> None:
        self._file(place).write_bytes(pickle.dumps(store))

    def _file(self, place: Place) -> Path:
        return self.folder / f"store-{place.subtask}"


@dataclass
class OneWorker:
    """A worker in this process."""

    folder: Path
    plan: JobPlan = field(init=False)
    copies: Copies = field(init=False)

    def __post_init__(self) -> None:
        self.plan = plan_of(self.folder)
        digest = hashlib.sha256(b"").hexdigest()
        job = ShippedJob("job", "run", str(self.folder / "outbox"), 2, 2, str(self.folder / "plan"), digest, None)
        self.copies = Copies(job, self.plan, self.folder)

    def epoch(self, number: int, place: Place, values: list[int], *, commits: bool = True) -> bool:
        """Compute an epoch; tells whether a copy had to be brought up to date for it."""
        stores = Stores(self.folder)
        store = stores.of(place)
        done = self.copies.epoch(place, payloads_of(self.plan, number, place, values), store)
        if commits:
            stores.commit(place, store)
        return done.report.was_behind

    def held(self) -> int:
        return len(self.copies._hosts)


class Other:
    """A worker in a process of its own."""

    def __init__(self, folder: Path) -> None:
        context = multiprocessing.get_context("fork")
        self._here, there = context.Pipe()
        self._process = context.Process(target=_serve, args=[folder, there], daemon=True)
        self._process.start()

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.begin(name, *args, **kwargs)
            return self.end()

        return call

    def begin(self, name: str, *args: Any, **kwargs: Any) -> None:
        self._here.send((name, args, kwargs))

    def end(self) -> Any:
        outcome = self._here.recv()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def kill(self) -> None:
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.join()

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def _serve(folder: Path, commands: Connection) -> None:
    worker = OneWorker(folder)
    while True:
        name, args, kwargs = commands.recv()
        try:
            commands.send(getattr(worker, name)(*args, **kwargs))
        except HeadwaterError as error:
            commands.send(RuntimeError(str(error)))


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[tuple[Other, Other]]:
    with closing(Other(tmp_path)) as one, closing(Other(tmp_path)) as two:
        yield one, two


def values_of(epoch: int) -> list[int]:
    return [key * 7 + epoch for key in range(50)]


def is_exact(folder: Path, place: Place, epochs: int) -> bool:
    """Whether a copy that is made anew of what is committed has the sums of so many epochs."""
    with closing(LevelHost(plan_of(folder), place.level, place.subtask)) as host:
        catch_up(host, Stores(folder).of(place), str(place))
        dumped = next(table.dump() for (_, name), table in host.tables().items() if name == "total")
    found = {row["key"]: row["value"] for row in dumped.to_pylist()}
    return len(found) > 10 and found == {key: sum(values_of(one)[key] for one in range(epochs)) for key in found}


def test_the_worker_that_has_the_copy_computes_for_the_others(workers: tuple[Other, Other], tmp_path: Path) -> None:
    one, two = workers
    behind = [(one if epoch % 3 == 0 else two).epoch(epoch, FIRST, values_of(epoch)) for epoch in range(9)]
    assert not any(behind)
    assert (one.held(), two.held()) == (1, 0)
    assert is_exact(tmp_path, FIRST, 9)


@pytest.mark.parametrize("is_killed", [True, False], ids=["killed", "of an attempt that was not committed"])
def test_a_copy_that_is_gone_or_wrong_is_made_anew(
    workers: tuple[Other, Other], tmp_path: Path, *, is_killed: bool
) -> None:
    one, two = workers
    for epoch in range(3):
        one.epoch(epoch, FIRST, values_of(epoch))
    if is_killed:
        one.kill()
    else:
        one.epoch(3, FIRST, values_of(3), commits=False)
    assert [two.epoch(epoch, FIRST, values_of(epoch)) for epoch in (3, 4)] == [True, False]
    assert two.held() == 1
    if not is_killed:
        assert one.held() == 0, "what is of no use is given up"
        assert not one.epoch(5, FIRST, values_of(5)), "the other one computes for it now"
    assert is_exact(tmp_path, FIRST, 5 if is_killed else 6)


def reached(folder: Path, workers: int = 1) -> None:
    """Wait until the function waits, in so many workers."""
    while len(list(folder.glob("wait.*"))) < workers:
        time.sleep(0.01)


def test_a_worker_that_is_killed_while_it_computes_for_another_costs_that_one_a_copy(
    workers: tuple[Other, Other], tmp_path: Path
) -> None:
    one, two = workers
    one.epoch(0, FIRST, values_of(0))
    (tmp_path / "wait").touch()
    two.begin("epoch", 1, FIRST, values_of(1))
    reached(tmp_path)
    one.kill()
    (tmp_path / "wait").unlink()
    assert two.end(), "it made a copy"
    assert is_exact(tmp_path, FIRST, 2)


def test_a_worker_that_holds_too_many_gives_one_up_when_it_is_busy(
    workers: tuple[Other, Other], tmp_path: Path
) -> None:
    one, two = workers
    one.epoch(0, FIRST, values_of(0))
    one.epoch(0, SECOND, values_of(0))
    assert not two.epoch(1, SECOND, values_of(1)), "it is idle, and computes for the other"
    (tmp_path / "wait").touch()
    one.begin("epoch", 1, FIRST, values_of(1))
    reached(tmp_path)
    two.begin("epoch", 2, SECOND, values_of(2))
    reached(tmp_path, workers=2)
    (tmp_path / "wait").unlink()
    assert (one.end(), two.end()) == (False, True)
    assert (one.held(), two.held()) == (1, 1)
    assert not two.epoch(2, FIRST, values_of(2)), "it has as many as the other, and computes also when it is busy"
    assert is_exact(tmp_path, FIRST, 3)
    assert is_exact(tmp_path, SECOND, 3)


def test_what_user_code_raises_in_another_worker_is_told_as_if_it_were_raised_here(
    workers: tuple[Other, Other], tmp_path: Path
) -> None:
    one, _ = workers
    one.epoch(0, FIRST, values_of(0))
    here = OneWorker(tmp_path)
    with pytest.raises(UserCodeError, match="a value that nobody takes") as raised:
        here.epoch(1, FIRST, [BAD] * 50)
    assert "raise ValueError" in str(raised.value.traceback)
    assert here.held() == 0
    assert here.epoch(1, FIRST, values_of(1)), "the other's copy is not trusted after that"
    assert is_exact(tmp_path, FIRST, 2)
    here.copies.close()


@pytest.fixture
def far(tmp_path: Path) -> Path:
    """A folder of which the path is longer than that of a socket can be."""
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    return folder


def test_workers_meet_in_a_folder_whose_path_is_too_long_for_a_socket(far: Path) -> None:
    with closing(Other(far)) as one, closing(Other(far)) as two:
        assert not any([one.epoch(0, FIRST, values_of(0)), two.epoch(1, FIRST, values_of(1))])
        assert (one.held(), two.held()) == (1, 0)
    assert is_exact(far, FIRST, 2)


def test_where_no_path_of_a_socket_is_short_enough_workers_have_copies_of_their_own(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(neighbours, "_OPEN_FOLDERS", far / "not Linux")
    here = OneWorker(far)
    with closing(here.copies), closing(Other(far)) as other:
        assert [here.epoch(0, FIRST, values_of(0)), other.epoch(1, FIRST, values_of(1))] == [False, True]
    assert is_exact(far, FIRST, 2)


def test_nobody_else_can_enter_the_folder_where_workers_meet(workers: tuple[Other, Other], tmp_path: Path) -> None:
    workers[0].epoch(0, FIRST, values_of(0))
    assert (tmp_path / "headwater-run").stat().st_mode & 0o077 == 0
