"""Unaligned epochs and at-least-once jobs on Spark: what waits is in its state, what is early is there before the commit."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

import headwater as hw
from headwater.connectors.contract import Sink, Staged, read_staged
from headwater.spark.engine import SparkJob
from headwater.task.inflight import FIRST_BUDGET

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ROWS = 3 * FIRST_BUDGET


class Numbered(hw.KeyedProcessFunction):
    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        yield event.n, self.seen.get()


def test_rows_in_flight_survive_a_crash_and_an_aligned_epoch_takes_them_all(
    spark: SparkSession, tmp_path: Path
) -> None:
    """All rows are for one subtask: of the two budgets of the first epoch, one waits, however fast the step is."""
    env = hw.Environment(
        "unaligned",
        spark=spark,
        job_dir=tmp_path / "job",
        unaligned="50 ms",
        restart=hw.restart.fixed(1, delay="0 ms"),
    )
    rows = env.from_rows([("a", n) for n in range(ROWS)], "k string, n long", hw.Watermarks.monotonous("n"))
    numbered = rows.key_by("k").process(Numbered(), "n long, number long", name="numbered")
    numbered.sink(hw.connectors.files(tmp_path / "out"))
    started, failed = threading.Event(), list[int]()
    read: list[int] = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        started.wait(60)
        status = job.status()
        if (step, epoch) == (hw.EpochStep.PLANNED, 0):
            job.request_aligned_epoch()
        if (step, epoch) == (hw.EpochStep.STAGED, 1) and not failed:
            assert (status.steps["numbered"]["in_flight"], status.aligned_epoch) == (FIRST_BUDGET, -1)
            failed.append(epoch)
            raise OSError("it dies here")
        if (step, epoch) == (hw.EpochStep.PLANNED, 2):
            assert (status.steps["numbered"]["in_flight"], status.aligned_epoch) == (0, 1)
            read.append(status.positions["rows"]["0"])

    job = env.start(on_step=on_step)
    assert isinstance(job, SparkJob)
    started.set()
    job.wait()
    assert (failed, read) == ([1], [2 * FIRST_BUDGET]), "the aligned epoch reads nothing"
    status = job.status()
    assert (status.state, status.aligned_epoch) == ("finished", status.epoch)
    found = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    assert sorted((row["n"], row["number"]) for row in found) == [(n, n + 1) for n in range(ROWS)]


class Seen(Sink):
    """Keeps in the driver whatever it is given, as often as it is given."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": []}

    def describe(self) -> str:
        return "seen"

    def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
        """Nothing to open."""

    def publish(self, epoch: int, files: list[Staged]) -> None:
        self.rows += [n for file in files for n in read_staged(file)["n"].to_pylist()]


def test_an_early_epoch_is_seen_before_its_commit_and_again_after_a_failure(
    spark: SparkSession, tmp_path: Path
) -> None:
    env = hw.Environment(
        "early",
        spark=spark,
        job_dir=tmp_path / "job",
        max_rows_per_epoch=4,
        checkpointing="at_least_once",
        restart=hw.restart.fixed(1, delay="0 ms"),
    )
    rows = env.from_rows([("a", n) for n in range(10)], "k string, n long")
    numbered = rows.key_by("k").process(Numbered(), "n long, number long")
    seen = Seen()
    numbered.sink(seen, name="seen")
    numbered.sink(hw.connectors.files(tmp_path / "out"), name="files")
    early: list[list[int]] = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == (hw.EpochStep.PUBLISHED, 1):
            early.append(list(seen.rows))
            assert not (tmp_path / "job" / "checkpoint" / "commits" / "1").exists()
            if len(early) == 1:
                raise OSError("it dies here")

    job = env.run(on_step=on_step)
    assert early == [list(range(8)), [*range(8), *range(4, 8)]], "the rows of epoch 1 come again, and none is missing"
    assert seen.rows == [*range(8), *range(4, 8), 8, 9]
    found = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    assert sorted((row["n"], row["number"]) for row in found) == [(n, n + 1) for n in range(10)]
    assert (job.status().state, len(job.status().restarts)) == ("finished", 1)
