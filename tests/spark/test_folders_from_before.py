"""Job folders of earlier versions are gone on from: Spark's store keeps the types that it began with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.job import folder, identity

pytestmark = pytest.mark.spark


class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)

    def process(self, row: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + row.n)
        yield row


def program(path: Path, spark: Any) -> hw.Environment:
    env = hw.Environment("before", job_dir=path / "job", spark=spark)
    rows = env.source(hw.connectors.log(path / "log", "rows"), "k string, n long")
    rows.key_by("k").process(Total(), "k string, n long").with_uid("totals").sink(hw.connectors.files(path / "out"))
    return env


@pytest.mark.parametrize("version", [1, 2])
def test_a_job_goes_on_in_a_folder_of_each_version(
    tmp_path: Path, spark: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = hw.EventLog(tmp_path / "log").create_topic("rows", hw.Schema.of("k string, n long").arrow)
    with monkeypatch.context() as before:
        before.setattr(folder, "FORMAT", version)
        before.setattr(identity.JobIdentity, "FORMAT", version)
        topic.append(pa.table({"k": ["a", "b"], "n": [1, 2]}))
        program(tmp_path, spark).run(available_now=True)
    topic.append(pa.table({"k": ["a", "c"], "n": [10, 30]}))
    program(tmp_path, spark).run(available_now=True)
    assert json.loads((tmp_path / "job" / "job.json").read_text())["format"] == version
    view = program(tmp_path, spark).state("totals", "total")
    assert [view.get(key) for key in "abc"] == [11, 2, 30]
