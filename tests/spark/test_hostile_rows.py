"""On Spark: a row that no output can be given stops a job before the commit, and secrets stay in files of the owner."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.postgres import PostgresTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
MARK = "Sw0rdfish"


def _events(folder: Path) -> hw.connectors.Source:
    log = hw.EventLog(folder / "log")
    if not (folder / "log").exists():
        keys = ["a", "b", "x" * 300, "c"]
        log.create_topic("events", hw.Schema.of("k string, n long").arrow).append(pa.table({"k": keys, "n": range(4)}))
    return hw.connectors.log(folder / "log", "events")


def _job(folder: Path, spark: SparkSession, *where: str) -> hw.Environment:
    env = hw.Environment("parts", spark=spark, job_dir=folder / "job", max_rows_per_epoch=2, parallelism=1)
    stream = env.source(_events(folder), "k string, n long", name="events")
    counted = stream.key_by("k").agg(n=hw.count()).with_uid("counted").select("k", "n")
    for condition in where:
        counted = counted.where(condition)
    counted.sink(hw.connectors.files(folder / "out", partition_by=["k"]), name="out")
    return env


def test_a_job_that_a_row_has_stopped_goes_on_with_a_program_that_drops_it(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(
        hw.PublishError, match=r"sink 'out' cannot take the rows of epoch \d+: column .k., which names folders"
    ) as told:
        _job(tmp_path, spark).run(bounded=True)
    assert "the folder's name would have 302 bytes, and 255 is the most" in str(told.value)
    assert sorted(path.name for path in (tmp_path / "out").glob("k=*")) == ["k=a", "k=b"]
    _job(tmp_path, spark, "char_length(k) < 100").run(bounded=True)
    assert sorted(path.name for path in (tmp_path / "out").glob("k=*")) == ["k=a", "k=b", "k=c"]


def test_a_password_is_in_files_of_the_owner_alone(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    seen: dict[str, int] = {}

    def look(step: hw.EpochStep, epoch: int) -> None:
        for path in (tmp_path / "job").rglob("*"):
            if path.is_file() and MARK.encode() in path.read_bytes():
                seen[path.name] = stat.S_IMODE(path.stat().st_mode)

    env = hw.Environment("secrets", spark=spark, job_dir=tmp_path / "job", parallelism=1)
    table = PostgresTable(f"host=127.0.0.1 port=1 password={MARK}", "users", "id long, name string")
    env.source(_events(tmp_path), "k string, n long").lookup_join(table, on={"n": "id"}).sink(
        hw.connectors.files(tmp_path / "out")
    )
    with pytest.raises(hw.SourceError, match="cannot be read") as failed:
        env.run(bounded=True, on_step=look)
    look(hw.EpochStep.PLANNED, 0)
    out, err = capfd.readouterr()
    assert MARK not in str(failed.value) + env.explain() + out + err
    assert set(seen.values()) == {0o600}, seen
    assert stat.S_IMODE((tmp_path / "job").stat().st_mode) == 0o700
