"""A job that crashes, with state by key and by columns: all is the same as in a run without a crash, on either backend."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from crash import Crash

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

SCHEMA = "k string, ts timestamp, n long"
ROWS, ROWS_PER_EPOCH = 120, 20
CRASHES = [("STAGED", 1, "memory"), ("MANIFEST", 2, "disk"), ("COMMITTED", 3, "memory")]
"""Before the state counts, before the commit, and after it; each run goes on with the other backend."""
SECOND = 1000


class Lasting(hw.KeyedProcessFunction):
    """Says with every row what it has: of some the last two epochs, of some the last ten seconds, some as it is read."""

    total = hw.ValueState("long", default=0, ttl=hw.ttl("2 s"))
    seen = hw.ListState("long", ttl=hw.ttl("10 s", clock="event"))
    marks = hw.MapState("long", "long", ttl=hw.ttl("2 s", update="read_and_write"))

    def process(self, row: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + row.n)
        self.seen.add(row.n)
        self.marks.put(row.n % 7, row.n)
        yield row.n, f"{self.total.get()} {self.seen.get()} {self.marks.get(row.n % 5)} {len(self.seen.get())}"


def build(folder: Path, log: Path, **settings: Any) -> hw.Environment:
    env = hw.Environment(
        "lasting", max_rows_per_epoch=ROWS_PER_EPOCH, job_dir=folder / "job", state_memory="1 KB", **settings
    )
    rows = env.source(hw.connectors.log(log, "rows"), SCHEMA, hw.Watermarks.bounded("ts", "1 s"))
    said = rows.key_by("k").process(Lasting(), "n long, what string", name="lasting")
    said.sink(hw.connectors.files(folder / "out"), name="out")
    by_key = rows.key_by("k")
    outputs = {
        "windows": by_key.window(hw.sliding("4 s", "1 s")).agg(total=hw.sum("n")),
        "sessions": rows.key_by("n").window(hw.session("1 s")).agg(total=hw.sum("n")).with_uid("sessions"),
        "near": by_key.interval_join(rows.key_by("k"), between=("-2 s", "0 s")),
        "pairs": by_key.join_regular(rows.key_by("k"), ttl="2 s"),
    }
    for name, stream in outputs.items():
        stream.sink(hw.connectors.files(folder / name), name=name)
    return env


def results(folder: Path) -> dict[str, list[Any]]:
    """What readers find in each output, in some order."""
    found = {}
    for name in ("out", "windows", "sessions", "near", "pairs"):
        rows = ds.dataset(folder / name, format="parquet").to_table().to_pylist()
        found[name] = sorted(tuple(map(str, row.values())) for row in rows)
    return found


def test_what_is_given_and_what_expires_are_the_same_after_crashes_on_either_backend(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = hw.EventLog(tmp_path / "log").create_topic("rows", SCHEMA)
    times = pa.array([1_700_000_000_000_000 + n * 300_000 for n in range(ROWS)], pa.timestamp("us", "UTC"))
    topic.append(pa.table({"k": [f"k{n % 3}" for n in range(ROWS)], "ts": times, "n": list(range(ROWS))}))
    clock = lambda n: SECOND * (n + 1)  # noqa: E731
    build(tmp_path / "whole", tmp_path / "log", engine="local").run(bounded=True, clock=clock)
    for step, epoch, backend in CRASHES:
        crash = Crash(step, epoch)
        with crash.is_seen():
            build(tmp_path, tmp_path / "log", spark=spark, state_backend=backend).run(
                bounded=True, clock=clock, on_step=crash
            )
    job = build(tmp_path, tmp_path / "log", spark=spark, state_backend="disk").run(bounded=True, clock=clock)
    assert job.status().steps["lasting"]["state_expired"] > 0
    expected = results(tmp_path / "whole")
    assert results(tmp_path) == expected
    assert len(expected["out"]) == len(expected["sessions"]) == ROWS
