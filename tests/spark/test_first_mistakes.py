"""Mistakes of the first hour that only Spark can show: what cannot travel, what workers lack, splits that come and go."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.parts.coming import SCHEMA, Coming
from tests.parts.waiting import until
from tests.parts.watching import OUT, Watch

import headwater as hw
from headwater.spark.failures import unwrap

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Holding(hw.ProcessFunction):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield event


def test_what_cannot_travel_is_named_before_anything_runs(spark: SparkSession) -> None:
    lock = threading.Lock()
    rows = hw.Environment("travels", spark=spark).from_rows([{"n": 1}], "n long")
    with pytest.raises(hw.GraphError, match=r"step 'map' goes to workers.* lock \(a _thread\.lock\) cannot be copied"):
        rows.map(lambda row: row if lock.locked() else None).collect()
    with pytest.raises(hw.GraphError, match=r"step 'holding' .*self\.lock \(a _thread\.lock\).*make it in open\(\)"):
        rows.process(Holding(), "n long").collect()


def test_a_module_that_workers_lack_is_named_with_how_to_ship_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_the_driver_has.py").write_text("def same(row):\n    return row\n")
    monkeypatch.syspath_prepend(tmp_path)
    same = importlib.import_module("only_the_driver_has").same
    rows = hw.Environment("lacks", spark=spark).from_rows([{"n": 1}], "n long")
    with pytest.raises(hw.JobError, match=r"cannot import 'only_the_driver_has'.*spark\.submit\.pyFiles"):
        rows.map(same).collect()


def test_workers_without_headwater_are_told_of(tmp_path: Path) -> None:
    failure = RuntimeError("org.apache…PythonException: …\nModuleNotFoundError: No module named 'headwater'\n\tat …")
    assert "a worker cannot import 'headwater'" in str(unwrap("job", failure, tmp_path))


def test_event_time_waits_for_a_source_without_splits_on_spark_too(spark: SparkSession) -> None:
    first = ([(0, 300)], [(100, ("a", 100)), (200, ("a", 200))])
    second = ([(500, 9_000)], [(600, ("b", 150)), (700, ("b", 900))])
    found = []
    for engine in ("local", "spark"):
        env = hw.Environment("coming", engine=engine, spark=spark, checkpoint_interval="1 ms")
        sink = hw.connectors.memory()
        rows = env.source(Coming([first, second]), SCHEMA, hw.Watermarks.monotonous("ts"))
        rows.key_by("k").process(Watch(), OUT).sink(sink)
        job = env.start(clock=lambda epoch: 100 * (epoch + 1), bounded=False)
        until(lambda job=job: job.status().published >= 8)  # type: ignore[misc]
        job.stop()
        found.append(sorted(tuple(row) for row in sink.rows if row.now <= 800))
    assert found[0] == found[1]
    assert ("a", "timer", 210, 700) in found[0]


def test_a_bounded_run_over_a_source_without_splits_ends_on_spark_too(spark: SparkSession) -> None:
    env = hw.Environment("none", spark=spark)
    rows = env.source(Coming([]), SCHEMA, hw.Watermarks.monotonous("ts"))
    rows.key_by("k").window(hw.tumbling("10 ms")).agg(n=hw.count()).sink(hw.connectors.memory())
    assert env.run(bounded=True).status().state == "finished"
