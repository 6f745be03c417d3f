"""A budget of state on Spark: the job fails before it commits more, and goes on exactly with another budget."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

import headwater as hw

SCHEMA = "user long, n long"
USERS, EPOCHS, EACH = 600, 4, 300


class Count(hw.KeyedProcessFunction):
    seen = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.seen.set(self.seen.get() + 1)
        yield ctx.key, self.seen.get()


def job(folder: Path, spark: Any, budget: Any) -> hw.Environment:
    env = hw.Environment(
        "budget", job_dir=folder / "job", spark=spark, max_rows_per_epoch=EACH, state_budget={"counts": budget}
    )
    events = env.source(hw.connectors.log(folder / "log", "events"), SCHEMA)
    counts = events.key_by("user").process(Count(), "user long, n long", name="counts")
    counts.sink(hw.connectors.files(folder / "out"))
    return env


@pytest.mark.spark
def test_a_job_that_ends_at_its_budget_goes_on_exactly_with_its_state_on_disk(spark: Any, tmp_path: Path) -> None:
    topic = hw.EventLog(tmp_path / "log").create_topic("events", SCHEMA, partitions=1)
    topic.append([(n % USERS, n) for n in range(EPOCHS * EACH)])
    with pytest.raises(hw.StateBudgetExceeded, match=r"step 'counts' may keep 7\.0 kB of state"):
        job(tmp_path, spark, "7 kB").run(bounded=True)  # of the 9.6 kB that two epochs bring
    stopped = hw.control.job(tmp_path / "job")
    assert (stopped.state, stopped.committed) == ("failed", 0)
    done = job(tmp_path, spark, hw.budget("7 kB", on_full="spill")).run(bounded=True)
    assert done.explain_state()["counts"].place == "disk"
    step = done.status().steps["counts"]
    assert (step.state["seen"], step.rows_in) == (USERS, (EPOCHS - 1) * EACH)
    found = ds.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    wanted = sorted((n % USERS, n // USERS + 1) for n in range(EPOCHS * EACH))
    assert sorted((row["user"], row["n"]) for row in found) == wanted
    again = job(tmp_path, spark, hw.budget("7 kB", on_full="spill")).run(bounded=True)
    assert again.explain_state()["counts"].place == "disk"  # at once, as it was too large at the end
