from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import headwater as hw


class Count(hw.KeyedProcessFunction):
    seen = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        yield event.k, self.seen.get()


def test_a_job_tells_its_counters_and_positions() -> None:
    env = hw.Environment("local", engine="local", max_rows_per_epoch=4)
    rows = [("ab"[i % 2], i) for i in range(10)]
    stream = env.from_rows(rows, "k string, n long", hw.Watermarks.monotonous("n"))
    stream.key_by("k").process(Count(), "k string, n long").sink(hw.connectors.memory())
    status = env.run().status()
    assert (status.state, status.epoch, status.published, status.error) == ("finished", 2, 2, None)
    assert status.positions == {"rows": {"0": 10}}
    assert (status.steps["rows"]["rows_out"], status.steps["count"]["rows_in"]) == (10, 10)
    assert status.steps["count"]["state"]["seen"] == 2
    assert status.steps["count"]["watermark_ms"] == (1 << 63) - 1


def test_every_step_of_an_epoch_is_told_in_order() -> None:
    told: list[tuple[str, int]] = []
    env = hw.Environment("local", engine="local")
    env.from_rows([(1,)], "n long").sink(hw.connectors.memory())
    env.run(on_step=lambda step, epoch: told.append((step.name, epoch)))
    assert told == [(step.name, 0) for step in hw.EpochStep]


def test_a_failed_job_raises_what_it_failed_with_and_says_so() -> None:
    def fail(row: Any) -> Any:
        raise ValueError("no")

    env = hw.Environment("local", engine="local")
    env.from_rows([(1,)], "n long").map(fail).sink(hw.connectors.memory())
    job = env.start()
    with pytest.raises(hw.UserCodeError, match="step 'map' failed: ValueError: no"):
        job.wait()
    assert job.status().state == "failed"
    assert "ValueError: no" in str(job.status().error)


def test_an_endless_job_is_stopped_between_epochs() -> None:
    published = threading.Event()
    sink = hw.connectors.memory()
    env = hw.Environment("local", engine="local", checkpoint_interval="1 ms", max_rows_per_epoch=5)
    env.source(hw.connectors.generator(lambda i: (i,), rate=1e6), "n long").sink(sink)
    job = env.start(on_step=lambda step, epoch: published.set() if sink.rows else None)
    assert published.wait(60)
    job.stop()
    assert job.status().state == "stopped"
    assert [row.n for row in sink.rows] == list(range(len(sink.rows)))
    assert len(sink.rows) >= 1


def test_a_bounded_run_of_endless_input_reads_what_is_there() -> None:
    env = hw.Environment("local", engine="local")
    sink = hw.connectors.memory()
    env.source(hw.connectors.generator(lambda i: (i,), rate=10.0), "n long").sink(sink)
    assert env.run(bounded=True).status().state == "finished"


def test_a_local_job_has_no_checkpoints_to_list() -> None:
    env = hw.Environment("local", engine="local")
    env.from_rows([(1,)], "n long").sink(hw.connectors.memory())
    with pytest.raises(hw.JobError, match=r"keeps its state in memory .* run it on Spark with a job_dir"):
        env.run().checkpoints()


def test_too_few_checkpoints_cannot_be_retained() -> None:
    with pytest.raises(hw.GraphError, match=r"retains at least 2 checkpoints.*got 1; raise checkpoints_retained"):
        hw.Environment("local", engine="local", checkpoints_retained=1)
