"""What a job has kept is looked at after its end, by its program and its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw

pytestmark = pytest.mark.spark


class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)

    def process(self, row: Any, ctx: hw.Context) -> Any:
        ctx.metrics.counter("rows").inc()
        self.total.set(self.total.get() + row.n)
        yield row


def program(job_dir: Path, spark: Any, uid: str = "totals", parallelism: int = 2) -> hw.Environment:
    env = hw.Environment("ended", job_dir=job_dir, spark=spark, max_rows_per_epoch=2, parallelism=parallelism)
    rows = env.from_rows([("a", 1), ("b", 2), ("a", 3)], "k string, n long", name="rows")
    rows.key_by("k").process(Total(), "k string, n long").with_uid(uid).sink(
        hw.connectors.files(job_dir.parent / "out")
    )
    return env


def test_state_of_a_job_that_has_ended_is_read_from_its_folder(tmp_path: Path, spark: Any) -> None:
    job = program(tmp_path / "job", spark).run()
    assert job.status().steps["totals"].metrics["rows"].value == 3
    before = sorted(path for path in tmp_path.rglob("*"))
    view = program(tmp_path / "job", spark, parallelism=3).state("totals", "total")
    assert (view.get("a"), view.get("b")) == (4, 2)
    first = program(tmp_path / "job", spark).state("totals", "total", epoch=0)
    assert (first.epoch, first.get("a")) == (0, 1)
    assert sorted(path for path in tmp_path.rglob("*")) == before
    with pytest.raises(hw.SavepointError, match="no state 'nothing'"):
        program(tmp_path / "job", spark).state("totals", "nothing")
    with pytest.raises(hw.JobError, match="step 'totals' is gone"):
        program(tmp_path / "job", spark, uid="others").state("others", "total")


def test_job_without_a_folder_has_no_state_to_look_at() -> None:
    with pytest.raises(hw.JobError, match="state outlives a job in its job folder"):
        hw.Environment("x").state("totals", "total")
