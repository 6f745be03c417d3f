"""State on disk on Spark: the workers keep it where Spark lets them, and a job folder goes on with either backend."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from tests.parts.waiting import until

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OUT = "k string, what string, last long, folders int"


class Everything(hw.KeyedProcessFunction):
    """Uses every kind of state and timers, and tells how many folders of state there are for its worker's executor."""

    value = hw.ValueState("bigint", default=0)
    listed = hw.ListState("bigint")
    mapped = hw.MapState("string", "bigint")
    largest = hw.ReducingState("bigint", reduce=max)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.value.set(self.value.get() + event.v)
        self.listed.add(event.v)
        self.mapped.put(f"m{event.v % 3}", event.v)
        self.largest.add(event.v)
        ctx.timers.event_time(1_000_000 + event.v)
        shown = self.value.get(), self.listed.get(), self.mapped.items(), self.largest.get()
        yield ctx.key, str(shown), event.v, len(list(_local_dir().glob("headwater-state-*")))

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        yield ctx.key, f"{timer.timestamp} {self.value.get()}", None, None


def _local_dir() -> Path:
    """Where Spark lets a worker keep files; on the local engine, where temporary files go."""
    return Path(os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0])


@pytest.mark.filterwarnings("ignore::headwater.EventTimeWarning")  # its timers are for the end
def test_a_job_folder_goes_on_with_either_backend(spark: SparkSession, tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path / "log").create_topic("events", hw.Schema.of("k string, v long").arrow)

    def job(**settings: Any) -> hw.Environment:
        env = hw.Environment(
            "moved", max_rows_per_epoch=10, checkpoint_interval="50 ms", state_memory="0 B", **settings
        )  # nothing stays in memory
        events = env.source(hw.connectors.log(tmp_path / "log", "events"), "k string, v long")
        events.key_by("k").process(Everything(), OUT).sink(hw.connectors.files(tmp_path / settings["engine"]))
        return env

    def rows(engine: str) -> list[dict[str, Any]]:
        return ds.dataset(tmp_path / engine, format="parquet").to_table().to_pylist()

    def run(backend: str, values: range, *, bounded: bool = False) -> list[int]:
        """Add rows and let the job in its folder handle them; how many folders of state it saw meanwhile."""
        topic.append(pa.table({"k": [f"k{v % 5}" for v in values], "v": list(values)}))
        started = job(engine="spark", job_dir=tmp_path / "job", spark=spark, state_backend=backend).start(
            bounded=bounded
        )
        if bounded:
            started.wait()
        else:
            until(lambda: len(rows("spark")) == values.stop, started)
            started.stop()
        return [row["folders"] for row in rows("spark") if row["last"] in values]

    assert 0 not in run("disk", range(20))
    assert 0 not in run("disk", range(20, 40))
    run("memory", range(40, 60))
    assert 0 not in run("disk", range(60, 80), bounded=True)
    job(engine="local").run(bounded=True)
    told = {engine: sorted((row["k"], row["what"]) for row in rows(engine)) for engine in ("spark", "local")}
    assert told["spark"] == told["local"]
    assert len(told["spark"]) == 160, "each row has told once, and each timer has fired"
