"""Enrichment on Spark: clients live as long as a worker, and a job goes on after the table it asks was away."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.parts.postgres import PostgresServer

pytestmark = pytest.mark.spark


class Client:
    """Says which process asked, and how often it was opened there."""

    async def open(self) -> None:
        self.opened = getattr(self, "opened", 0) + 1

    async def __call__(self, row: Any) -> Any:
        await asyncio.sleep(0)
        return {"n": row.n, "pid": os.getpid(), "opened": self.opened}


def test_coroutines_run_in_the_workers_and_their_client_is_opened_once(spark: SparkSession) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    env = hw.Environment("clients", spark=spark, max_rows_per_epoch=5)
    asked = (
        env.from_rows([(n,) for n in range(20)], "n long")
        .rebalance()
        .map_async(Client(), "n long, pid long, opened int")
    )
    found = asked.collect()
    assert sorted(row.n for row in found) == list(range(20))
    assert {row.opened for row in found} == {1}
    assert os.getpid() not in {row.pid for row in found}


def test_a_static_dataframe_of_spark_is_a_table(spark: SparkSession) -> None:
    users = spark.createDataFrame([(1, "ann"), (2, "bob")], "id long, name string")
    env = hw.Environment("frame", spark=spark)
    joined = env.from_rows([(2,), (3,)], "user long").lookup_join(users, on={"user": "id"})
    assert sorted(joined.collect()) == [(2, "bob"), (3, None)]
    with pytest.raises(hw.GraphError, match="a table that stands still; got 'a streaming DataFrame'"):
        env.from_rows([], "user long").lookup_join(spark.readStream.format("rate").load(), on="user")


def test_a_job_goes_on_after_its_server_was_away(spark: SparkSession, postgres: PostgresServer, tmp_path: Path) -> None:
    postgres.run("create table names (id int, name text)", "insert into names values (1, 'ann'), (2, 'bob')")

    def run(on_step: Any) -> None:
        env = hw.Environment("away", spark=spark, job_dir=tmp_path / "job", max_rows_per_epoch=3)
        table = hw.connectors.PostgresTable(postgres.conninfo, "names", "id long, name string")
        rows = env.from_rows([(n % 3, n) for n in range(12)], "user long, n long").rebalance()
        rows.lookup_join(table, on={"user": "id"}).sink(hw.connectors.files(tmp_path / "out"))
        env.run(on_step=on_step)

    def stop_before_the_third(step: hw.EpochStep, epoch: int) -> None:
        if step == hw.EpochStep.PLANNED and epoch == 2:
            postgres.stop()

    try:
        with pytest.raises(hw.SourceError, match=r"step 'lookup_join': PostgreSQL table names at .* cannot be read"):
            run(stop_before_the_third)
        assert ds.dataset(tmp_path / "out").count_rows() == 6
    finally:
        postgres.start()
    run(lambda step, epoch: None)
    names = [None, "ann", "bob"]
    found = ds.dataset(tmp_path / "out").to_table().sort_by("n").to_pylist()
    assert found == [{"user": n % 3, "n": n, "name": names[n % 3]} for n in range(12)]
