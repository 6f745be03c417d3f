"""A job on Spark that another process sees, and asks for a savepoint and to stop."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.parts.waiting import until

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

OPERATOR = """
import json, sys
from pathlib import Path
import headwater as hw

job_dir, saved = map(Path, sys.argv[1:])
job = hw.control.job(job_dir)
told = {"state": job.state, "pid": job.owner.pid, "steps": {uid: dict(step) for uid, step in job.steps.items()}}
told |= {"published": job.published, "positions": job.positions, "epochs": sorted(job.epochs())}
told["saved"] = str(hw.control.request_savepoint(job_dir, saved / "first"))
told["last"] = str(hw.control.request_stop(job_dir, savepoint=saved / "last"))
told["after"] = hw.control.job(job_dir).state
print(json.dumps(told))
assert "pyspark" not in sys.modules
"""


class Count(hw.KeyedProcessFunction):
    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        yield event.k, self.n.get()


def test_another_process_sees_a_job_and_stops_it_with_a_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path / "log").create_topic("rows", hw.Schema.of("k string").arrow)
    topic.append(pa.table({"k": [*"abab"]}))
    job_dir = tmp_path / "jobs" / "counts"
    env = hw.Environment("counts", spark=spark, job_dir=job_dir, checkpoint_interval="100 ms")
    rows = env.source(hw.connectors.log(tmp_path / "log", "rows"), "k string").with_uid("rows")
    counts = rows.key_by("k").process(Count(), "k string, n long").with_uid("count")
    counts.sink(hw.connectors.files(tmp_path / "out", format="json"))
    job = env.start()
    until(lambda: any(view.published >= 0 and bool(view.steps) for view in hw.control.jobs(tmp_path / "jobs")), job)
    done = subprocess.run(
        [sys.executable, "-c", OPERATOR, str(job_dir), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert job.wait()
    told, status = json.loads(done.stdout), job.status()
    assert (told["state"], told["after"], status.state) == ("running", "stopped", "stopped")
    assert told["positions"] == {"rows": {"0": 4}}
    assert (told["steps"]["count"]["rows_in"], told["steps"]["count"]["late_dropped"]) == (4, 0)
    assert told["epochs"][0] == 0
    first, last = (hw.savepoint.read(told[name]) for name in ("saved", "last"))
    assert first.epoch < last.epoch or first.epoch == last.epoch == status.published
    assert sorted(last["count", "n"].to_arrow().to_pydict()["value"]) == [2, 2]
    assert (hw.control.job(job_dir).status, hw.control.job(job_dir).is_running) == (status, False)
