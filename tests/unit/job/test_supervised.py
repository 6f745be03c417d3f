"""Jobs on the local engine that fail and are started again: what they publish is what they would have without."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.connectors.memory import MemorySink
from headwater.epoch.protocol import Claim
from headwater.errors import JobError
from headwater.job.checkpoints.listing import Checkpoints
from headwater.job.engine import Settings
from headwater.job.layout import JobLayout
from headwater.job.reading import read_reasons
from headwater.job.state_view import StateView
from headwater.job.supervised import SupervisedJob
from headwater.plan.plan import plan_job
from headwater.savepoints.files import Savepoint
from headwater.savepoints.origin import Origin

SCHEMA = "user string, at long"
ROWS = [("abcde"[i % 5], i * 100) for i in range(60)]


class ManualTime:
    """Time that passes while somebody waits, and only then."""

    def __init__(self) -> None:
        self.ms = 1_000_000
        self.waits: list[int] = []

    def now_ms(self) -> int:
        return self.ms

    def wait(self, delay_ms: int, stopping: threading.Event) -> None:
        self.waits.append(delay_ms)
        self.ms += delay_ms


class Failures:
    """A number of failures to come, in a file: neither state nor a function's own copy of it."""

    def __init__(self, folder: Path, times: int) -> None:
        self.file = folder / "failures"
        self.file.write_text(str(times))

    def strike(self) -> None:
        left = int(self.file.read_text())
        if left:
            self.file.write_text(str(left - 1))
            raise RuntimeError(f"{left} to come")


class Count(hw.KeyedProcessFunction):
    """Counts and sets timers; fails in the middle of an epoch, when other keys have changed already."""

    n = hw.ValueState("long", default=0)
    last = hw.MapState("long", "long")

    def __init__(self, failures: Failures | None = None) -> None:
        self.failures = failures

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.at == 3300 and self.failures is not None:
            self.failures.strike()
        self.n.set(self.n.get() + 1)
        self.last.put(event.at % 3, event.at)
        ctx.timers.event_time(ctx.timestamp + 250)
        yield event.user, self.n.get()

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, -sum(self.last.values())


class PerCount(hw.KeyedProcessFunction):
    """The second level."""

    users = hw.ListState("string")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.users.add(event.user)
        yield ctx.key, "".join(self.users.get())


def build(function: Count, *sinks: hw.connectors.Sink, **settings: Any) -> hw.Environment:
    env = hw.Environment("counts", engine="local", max_rows_per_epoch=8, **settings)
    counts = (
        env.from_rows(ROWS, SCHEMA, hw.Watermarks.monotonous("at"))
        .key_by("user")
        .process(function, "user string, n long", name="count")
    )
    per_count = counts.key_by("n").process(PerCount(), "n long, users string")
    for number, sink in enumerate(sinks):
        (counts if number % 2 == 0 else per_count).sink(sink).with_uid(f"out{number}")
    return env


def expected() -> list[list[Any]]:
    sinks = hw.connectors.memory(), hw.connectors.memory()
    build(Count(), *sinks).run()
    return [sink.rows for sink in sinks]


def test_a_job_that_fails_goes_on_from_its_last_committed_epoch(tmp_path: Path) -> None:
    sinks = hw.connectors.memory(), hw.connectors.memory()
    time = ManualTime()
    env = build(Count(Failures(tmp_path, 3)), *sinks, restart=hw.restart.exponential(initial="1 s"))
    status = env.run(restart_time=time).status()
    assert [sink.rows for sink in sinks] == expected()
    assert (status.state, status.error) == ("finished", None)
    assert status.steps["count"]["rows_in"] == len(ROWS), "an epoch that was given up counts for nothing"
    assert time.waits == [1000, 2000, 4000]
    assert [(r.attempt, r.failed_ms, r.delay_ms) for r in status.restarts] == [
        (1, 1_000_000, 1000),
        (2, 1_001_000, 2000),
        (3, 1_003_000, 4000),
    ]
    assert {(r.error, r.step) for r in status.restarts} == {("UserCodeError", "count")}
    assert [r.message.splitlines()[0] for r in status.restarts] == [
        f"step 'count' failed for key 'd' at timestamp 3300, 1970-01-01 00:00:03.300: RuntimeError: {left} to come"
        for left in (3, 2, 1)
    ]


@pytest.mark.parametrize("step", list(hw.EpochStep))
def test_a_failure_at_any_step_of_an_epoch_changes_nothing(step: hw.EpochStep, tmp_path: Path) -> None:
    failures = Failures(tmp_path, 2)

    def on_step(told: hw.EpochStep, epoch: int) -> None:
        if told is step and epoch == 3:
            failures.strike()

    sinks = hw.connectors.memory(), hw.connectors.files(tmp_path / "out", format="json"), hw.connectors.memory()
    env = build(Count(), *sinks, restart=hw.restart.fixed(2))
    status = env.run(on_step=on_step, restart_time=ManualTime()).status()
    comes_once = step in (hw.EpochStep.COMMITTED, hw.EpochStep.CLEANED)
    assert (status.state, len(status.restarts)) == ("finished", 1 if comes_once else 2)
    first, second = expected()
    assert (sinks[0].rows, sinks[2].rows) == (first, first)
    lines = [line for path in sorted((tmp_path / "out").glob("*.jsonl")) for line in path.read_text().splitlines()]
    assert [tuple(json.loads(line).values()) for line in lines] == second


def test_a_sink_that_is_away_for_a_while_gets_what_it_missed_once(tmp_path: Path) -> None:
    class Away(hw.connectors.Sink):
        """Takes an epoch only when its failures are over."""

        guarantee = hw.Guarantee.EXACTLY_ONCE

        def __init__(self, failures: Failures) -> None:
            self.failures = failures
            self.epochs: list[int] = []
            self.opened: list[bool] = []

        def describe(self) -> str:
            return "away"

        def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
            self.opened.append(resumed)

        def publish(self, epoch: int, files: list[Staged]) -> None:
            if epoch == 2:
                self.failures.strike()
            self.epochs.append(epoch)

    memory, away = hw.connectors.memory(), Away(Failures(tmp_path, 3))
    env = build(Count(), memory, away, restart=hw.restart.failure_rate(3))
    status = env.run(restart_time=ManualTime()).status()
    assert memory.rows == expected()[0], "the sink before it got epoch 2 four times"
    assert away.epochs == list(range(status.epoch + 1))
    assert away.opened == [False, True, True, True]
    assert {(r.error, r.step) for r in status.restarts} == {("PublishError", None)}


def test_a_sink_that_cannot_be_closed_is_told_unless_the_job_failed_before(tmp_path: Path) -> None:
    class Unclosable(MemorySink):
        def close(self) -> None:
            raise OSError("it stays open")

    sink = Unclosable()
    job = build(Count(), sink).start()
    with pytest.raises(OSError, match="it stays open"):
        job.wait()
    assert (job.status().state, job.status().error, sink.rows) == ("failed", "it stays open", expected()[0])
    job = build(Count(Failures(tmp_path, 1)), Unclosable()).start()
    with pytest.raises(hw.UserCodeError, match="strike"):
        job.wait()


def test_a_strategy_that_gives_up_says_after_how_many_restarts(tmp_path: Path) -> None:
    sink = hw.connectors.memory()
    env = build(Count(Failures(tmp_path, 9)), sink, restart=hw.restart.fixed(2, delay="1 s"))
    job = env.start(restart_time=ManualTime())
    with pytest.raises(hw.UserCodeError, match="7 to come") as caught:
        job.wait()
    assert caught.value.__notes__ == ["given up after 2 restarts, as fixed(2, delay='1000 ms') says"]
    status = job.status()
    assert (status.state, len(status.restarts)) == ("failed", 2)
    assert str(status.error).endswith("given up after 2 restarts, as fixed(2, delay='1000 ms') says")
    assert sink.rows == expected()[0][: len(sink.rows)]


def test_without_a_strategy_a_failure_is_the_end(tmp_path: Path) -> None:
    job = build(Count(Failures(tmp_path, 1)), hw.connectors.memory()).start()
    with pytest.raises(hw.UserCodeError) as caught:
        job.wait()
    assert not hasattr(caught.value, "__notes__")
    assert job.status().restarts == ()


def test_a_job_that_waits_to_be_started_again_can_be_stopped(tmp_path: Path) -> None:
    waiting = threading.Event()

    class Endless(ManualTime):
        def wait(self, delay_ms: int, stopping: threading.Event) -> None:
            waiting.set()
            stopping.wait()

    env = build(Count(Failures(tmp_path, 1)), hw.connectors.memory(), restart=hw.restart.fixed(9))
    job = env.start(restart_time=Endless())
    assert waiting.wait(60)
    assert job.status().state == "restarting"
    job.stop()
    assert job.wait()
    assert (job.status().state, len(job.status().restarts)) == ("stopped", 1)


def test_a_job_that_cannot_start_is_not_tried_again(tmp_path: Path) -> None:
    hw.EventLog(tmp_path).create_topic("events", pa.schema([("k", pa.string())]))
    env = hw.Environment("job", engine="local", restart=hw.restart.fixed(9))
    env.source(hw.connectors.log(tmp_path, "events"), SCHEMA).sink(hw.connectors.memory())
    time = ManualTime()
    with pytest.raises(hw.SourceError):
        env.start(restart_time=time)
    assert time.waits == []


def test_a_bounded_run_ends_where_it_would_have_without_the_failure(tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path).create_topic("events", hw.Schema.of("n long").arrow)
    topic.append(pa.table({"n": [0, 1, 2]}))
    failures = Failures(tmp_path, 1)

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.STAGED:
            topic.append(pa.table({"n": [99]}))
            failures.strike()

    sink = hw.connectors.memory()
    env = hw.Environment("job", engine="local", restart=hw.restart.fixed(1))
    env.source(hw.connectors.log(tmp_path, "events"), "n long").sink(sink)
    env.run(bounded=True, on_step=on_step, restart_time=ManualTime())
    assert sink.rows == [(0,), (1,), (2,)]


def test_functions_are_closed_and_opened_again(tmp_path: Path) -> None:
    told = tmp_path / "told"
    failures = Failures(tmp_path, 1)

    def note(what: str) -> None:
        told.write_text((told.read_text() if told.exists() else "") + what)

    class Client:
        async def open(self) -> None:
            note("open ")

        async def __call__(self, row: Any) -> Any:
            failures.strike()
            return row

        async def close(self) -> None:
            note("close ")

    sink = hw.connectors.memory()
    env = hw.Environment("job", engine="local", restart=hw.restart.fixed(1))
    env.from_rows([(1,)], "n long").map_async(Client()).sink(sink)
    env.run(restart_time=ManualTime())
    assert (told.read_text(), sink.rows) == ("open close open close ", [(1,)])


def test_reasons_in_a_job_folder_survive_a_line_that_was_cut_off(tmp_path: Path) -> None:
    file = tmp_path / "restarts.jsonl"
    assert read_reasons(file) == ()
    reason = '{"attempt": 1, "failed_ms": 5, "delay_ms": 7, "error": "JobError", "message": "no", "step": null}'
    file.write_text(f'{reason}\n{{"attempt": 2')
    assert read_reasons(file) == (hw.RestartReason(1, 5, 7, "JobError", "no", None),)
    file.write_text('{"attempt": 2\n')
    with pytest.raises(hw.JobError, match=r"restarts\.jsonl cannot be read"):
        read_reasons(file)


def test_a_damaged_job_folder_is_not_tried_again(tmp_path: Path) -> None:
    """No start mends it."""
    job = _Failing(tmp_path, JobError.corrupt("published.json", "it is empty"))
    job.start()
    with pytest.raises(hw.JobError, match=r"published\.json cannot be read: it is empty; "):
        job.wait()
    assert (job.status().state, job.status().restarts) == ("failed", ())


def test_a_reason_that_cannot_be_written_does_not_keep_a_job_from_being_started_again(tmp_path: Path) -> None:
    """As on a full disk, which may be the reason."""
    (tmp_path / "restarts.jsonl").mkdir()  # nothing can be written there
    job = _Failing(tmp_path, OSError("no space"))
    job.start()
    assert job.wait()
    assert [reason.message for reason in job.status().restarts] == ["no space"]
    assert job.status().state == "finished"


class _Failing(SupervisedJob):
    """Fails once."""

    engine = "local"

    def __init__(self, job_dir: Path, error: Exception) -> None:
        restart = hw.restart.fixed(1, delay="1 ms")
        settings = Settings(
            job_dir=None,
            checkpoint_interval_ms=0,
            checkpoints_retained=1,
            max_rows_per_epoch=1,
            bounded=True,
            restart=restart,
        )
        plan = plan_job(build(Count(), hw.connectors.memory()).graph, 1, 128)
        super().__init__(plan, settings, JobLayout(job_dir))
        self._folder, self._raised = job_dir, error

    def start(self) -> None:
        self._protocol.begin(self._folder / "sources", None, is_new=True)
        self._protocol.recover(again=False)
        super().start()

    def _attempt(self, *, again: bool) -> str:
        if not again:
            raise self._raised
        return "finished"

    def claim(self, origin: Origin | None) -> Claim:
        return Claim("job", origin, resumed=False, outbox=self._folder)

    def is_committed(self, epoch: int) -> bool:
        raise NotImplementedError

    def state(self, uid: str, name: str, *, epoch: int | None = None) -> StateView:
        raise NotImplementedError

    def checkpoints(self) -> Checkpoints:
        raise NotImplementedError

    def _save(self, path: Path) -> Savepoint:
        raise NotImplementedError

    def release(self) -> None:
        """There is nothing to let go of."""
