"""Savepoints in the life of a job: while it runs, when it stops, drains or has ended, and of a job that came from one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.connectors.memory import MemorySink, RowsSource
from headwater.state import changelog, slices
from headwater.state.changelog import Head, MemoryRecordStore

SCHEMA = "k string, n bigint, at bigint"
ROWS = [(f"k{n % 4}", n, n * 1000) for n in range(40)]


class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        ctx.timers.event_time(100_000)
        yield ctx.key, self.total.get()

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Any:
        yield ctx.key, -self.total.get()


def job(sink: Any, *, bounded: bool = True, rows: list[Any] = ROWS) -> hw.Environment:
    env = hw.Environment("life", engine="local", max_rows_per_epoch=10, checkpoint_interval="1 ms")
    source = Endless(rows) if not bounded else None
    marks = hw.Watermarks.monotonous("at")
    stream = env.from_rows(rows, SCHEMA, marks) if source is None else env.source(source, SCHEMA, marks, name="rows")
    stream.key_by("k").process(Total(), "k string, n bigint").with_uid("total").sink(sink)
    return env


class Endless(RowsSource):
    """Rows that may be followed by others."""

    bounded = False

    def __init__(self, rows: list[Any]) -> None:
        super().__init__([rows], hw.Schema.of(SCHEMA))


def totals(path: Path) -> dict[str, int]:
    return {row["key"]: row["value"] for row in hw.savepoint.read(path)["total", "total"].to_arrow().to_pylist()}


WHOLE = {f"k{k}": sum(range(k, 40, 4)) for k in range(4)}


def started(sink: Any, **start: Any) -> hw.Job:
    """A job that has read all its rows and waits for more."""
    running = job(sink, bounded=False).start(**start)
    while len(sink.rows) < 40:
        assert running.status().state == "running"
    return running


def test_a_running_job_is_saved_and_goes_on(tmp_path: Path) -> None:
    sink = hw.connectors.memory()
    running = started(sink)
    first = running.savepoint(tmp_path / "first")
    second = running.savepoint(tmp_path / "second")
    running.stop()
    assert totals(first) == totals(second) == WHOLE
    assert hw.savepoint.read(first).epoch <= hw.savepoint.read(second).epoch
    assert {row.n for row in sink.rows} >= set(WHOLE.values())


def test_a_job_that_is_stopped_is_saved_as_it_ends(tmp_path: Path) -> None:
    running = started(hw.connectors.memory())
    assert running.stop(savepoint=tmp_path / "sp") == tmp_path / "sp"
    assert totals(tmp_path / "sp") == WHOLE
    assert not hw.savepoint.read(tmp_path / "sp").has_ended
    assert running.status().state == "stopped"


def test_a_job_that_is_drained_fires_all_first(tmp_path: Path) -> None:
    sink = hw.connectors.memory()
    running = started(sink)
    path = running.stop(savepoint=tmp_path / "sp", drain=True)
    assert sorted(row.n for row in sink.rows if row.n < 0) == sorted(-total for total in WHOLE.values())
    saved = hw.savepoint.read(tmp_path / "sp")
    assert path == saved.path
    assert saved.has_ended
    assert saved["total", "@timers.event"].rows == 0
    assert running.status().state == "finished"


def test_event_time_stays_at_its_end_after_a_drain(tmp_path: Path) -> None:
    """State goes on, and no timer fires any more."""
    path = started(hw.connectors.memory()).stop(savepoint=tmp_path / "sp", drain=True)
    sink = hw.connectors.memory()
    job(sink, rows=[*ROWS, ("k0", 1, 40_000)]).run(from_=path)
    assert [row.n for row in sink.rows] == [WHOLE["k0"] + 1]


def test_much_state_of_a_savepoint_is_stored_in_several_records_and_saved_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = started(hw.connectors.memory()).stop(savepoint=tmp_path / "sp")
    heads: list[Head] = []
    kept = MemoryRecordStore.set_head
    monkeypatch.setattr(MemoryRecordStore, "set_head", lambda store, head: heads.append(head) or kept(store, head))
    monkeypatch.setattr(slices, "_PART_ENTRIES", 1)
    monkeypatch.setattr(changelog, "FIRST_RECORD_BYTES", 1)
    sink = hw.connectors.memory()
    more = [*ROWS, ("k0", 1, 40_000), ("k1", 1, 41_000)]
    running = job(sink, bounded=False, rows=more).start(from_=path)
    while len(sink.rows) < 2:
        assert running.status().state == "running"
    running.stop(savepoint=tmp_path / "again")
    assert any(len(set(head.parts)) > 2 for head in heads if head.base == 1)
    assert totals(tmp_path / "again") == {**WHOLE, "k0": WHOLE["k0"] + 1, "k1": WHOLE["k1"] + 1}
    assert hw.savepoint.read(tmp_path / "again")["total", "@timers.event"].rows == len(WHOLE)


def test_a_job_without_state_is_drained_and_saved(tmp_path: Path) -> None:
    env = hw.Environment("stateless", engine="local", checkpoint_interval="1 ms")
    sink = hw.connectors.memory()
    env.source(Endless(ROWS), SCHEMA, name="rows").where("n > 30").sink(sink)
    running = env.start()
    running.savepoint(tmp_path / "running")
    path = running.stop(savepoint=tmp_path / "sp", drain=True)
    assert path is not None
    assert hw.savepoint.read(path).positions == {"rows": {"0": 40}}
    assert len(sink.rows) == 9


def test_a_job_that_has_ended_is_saved(tmp_path: Path) -> None:
    done = job(hw.connectors.memory()).run()
    assert totals(done.savepoint(tmp_path / "one")) == WHOLE
    path = done.stop(savepoint=tmp_path / "two")
    assert path == tmp_path / "two"
    assert totals(tmp_path / "two") == WHOLE
    assert hw.savepoint.read(tmp_path / "two").has_ended


def test_a_job_that_has_failed_gives_its_error_and_not_a_savepoint(tmp_path: Path) -> None:
    def fail(row: Any) -> Any:
        raise ValueError("no good")

    env = hw.Environment("fails", engine="local")
    env.from_rows(ROWS, SCHEMA).map(fail).sink(hw.connectors.memory())
    failed = env.start()
    with pytest.raises(hw.UserCodeError, match="no good"):
        failed.wait()
    with pytest.raises(hw.UserCodeError, match="no good"):
        failed.stop(savepoint=tmp_path / "sp")
    with pytest.raises(hw.SavepointError, match="job 'fails' has not committed an epoch"):
        failed.savepoint(tmp_path / "sp2")


def test_an_epoch_that_could_not_be_published_is_not_saved(tmp_path: Path) -> None:
    class Away(MemorySink):
        def publish(self, epoch: int, files: Any) -> None:
            if epoch == 2:
                raise ConnectionError("away")
            super().publish(epoch, files)

    failed = job(Away()).start()
    with pytest.raises(hw.PublishError, match="away"):
        failed.wait()
    with pytest.raises(hw.SavepointError, match="epoch 2 is committed and could not be published"):
        failed.savepoint(tmp_path / "sp")


class Gate:
    """Holds a job before its first epoch."""

    def __init__(self) -> None:
        self.open = threading.Event()

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            self.open.wait()


def test_a_job_from_a_savepoint_is_saved_when_it_has_an_epoch_of_its_own(tmp_path: Path) -> None:
    """Before that it has no state; a savepoint of it then would be one of nothing."""
    path = run_epochs(job(hw.connectors.memory()), 2).stop(savepoint=tmp_path / "sp")
    gate = Gate()
    running = job(hw.connectors.memory(), bounded=False).start(from_=path, on_step=gate)
    with pytest.raises(hw.JobError, match="job 'life' has not committed an epoch yet, so there is no state to look at"):
        running.state("total", "total")
    threading.Timer(0.05, gate.open.set).start()
    again = running.savepoint(tmp_path / "again")
    assert sum(totals(again).values()) >= sum(range(20))
    assert hw.savepoint.read(again).epoch >= 2
    running.stop()


def test_savepoints_follow_each_other(tmp_path: Path) -> None:
    sinks = [hw.connectors.memory() for _ in range(4)]
    path = run_epochs(job(sinks[0]), 1).stop(savepoint=tmp_path / "0")
    for number in (1, 2):
        path = run_epochs(job(sinks[number]), 1, from_=path).stop(savepoint=tmp_path / str(number))
        assert hw.savepoint.read(path).epoch == number
    job(sinks[3]).run(from_=path)
    whole = hw.connectors.memory()
    job(whole).run()
    assert [row for sink in sinks for row in sink.rows] == whole.rows


# -- sinks -------------------------------------------------------------------------------------------------------------


def written(folder: Path) -> list[Any]:
    return sorted(
        map(tuple, (row.values() for row in ds.dataset(folder, exclude_invalid_files=True).to_table().to_pylist()))
    )


def test_output_goes_on_where_it_was(tmp_path: Path) -> None:
    out, whole = tmp_path / "out", hw.connectors.memory()
    job(whole).run()
    path = run_epochs(job(hw.connectors.files(out)), 2).stop(savepoint=tmp_path / "sp")
    job(hw.connectors.files(out)).run(from_=path)
    assert written(out) == sorted(map(tuple, whole.rows))


def test_output_from_after_the_savepoint_is_not_written_twice(tmp_path: Path) -> None:
    out = tmp_path / "out"
    path = run_epochs(job(hw.connectors.files(out)), 2).stop(savepoint=tmp_path / "sp")
    job(hw.connectors.files(out)).run(from_=path)
    with pytest.raises(hw.PublishError, match="has output from after the savepoint, which is of epoch 1"):
        job(hw.connectors.files(out)).run(from_=path)
    job(hw.connectors.files(tmp_path / "other")).run(from_=path)


def test_output_from_after_an_older_savepoint_is_refused(tmp_path: Path) -> None:
    """The job went on after the savepoint: rows that it has written since would come again."""
    out = tmp_path / "out"
    paths: list[Path] = []
    jobs: list[Any] = []
    begun = threading.Event()

    def save_once(step: hw.EpochStep, epoch: int) -> None:
        begun.wait()
        if step is hw.EpochStep.PLANNED and epoch == 2:
            paths.append(jobs[0].savepoint(tmp_path / "sp"))

    jobs.append(job(hw.connectors.files(out)).start(on_step=save_once))
    begun.set()
    jobs[0].wait()
    assert hw.savepoint.read(paths[0]).epoch == 1
    with pytest.raises(hw.PublishError, match="has output from after the savepoint, which is of epoch 1"):
        job(hw.connectors.files(out)).run(from_=paths[0])
