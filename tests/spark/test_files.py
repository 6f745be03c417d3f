"""Files in and out on Spark, where the ledger is written by one process and read by others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.parts.waiting import until

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def put(folder: Path, first: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    lines = "".join(f'{{"n": {n}, "day": "2024-01-0{1 + n % 2}"}}\n' for n in range(first, first + 5))
    hidden = folder / f".{first}"
    hidden.write_text(lines)
    hidden.rename(folder / f"{first}.json")


def test_files_are_read_once_and_written_once(spark: SparkSession, tmp_path: Path) -> None:
    def job(job_dir: str) -> hw.Environment:
        env = hw.Environment("files", spark=spark, job_dir=tmp_path / job_dir, checkpoint_interval="100 ms")
        source = hw.connectors.read_files(tmp_path / "in", format="json", splits=2, settle="0 s")
        rows = env.source(source, "n long, day date", name="in").rebalance()
        rows.sink(hw.connectors.files(tmp_path / "out", partition_by=["day"], roll_every="1 h"), name="out")
        return env

    def run(count: int, job_dir: str, **start: Any) -> None:
        running = job(job_dir).start(**start)
        until(lambda: sum(running.status().positions.get("in", {}).values()) == count, running)
        until(lambda: running.status().published == running.status().epoch, running)
        running.stop()

    put(tmp_path / "in", 0)
    put(tmp_path / "in", 5)
    run(2, "one")
    put(tmp_path / "in", 10)
    run(3, "one")
    put(tmp_path / "in", 15)
    run(4, "two", from_=hw.checkpoints(tmp_path / "one").latest)
    found = spark.read.parquet(str(tmp_path / "out"))
    assert dict(found.dtypes) == {"n": "bigint", "day": "date"}
    assert sorted((row.n, row.day.day) for row in found.collect()) == [(n, 1 + n % 2) for n in range(20)]
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 6, "a file for each run and day"
