"""The ways to run a job: those that cannot be, and what to do instead."""

from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw


def job(log: Path, **settings: object) -> hw.Environment:
    env = hw.Environment("runs", **settings)  # type: ignore[arg-type]
    hw.EventLog(log).create_topic("rows", "n long", exist_ok=True)
    env.source(hw.connectors.log(log, "rows"), "n long").sink(hw.connectors.memory())
    return env


@pytest.mark.parametrize("bounded", [True, False])
def test_a_run_that_ends_for_good_or_never_does_not_go_on_later(tmp_path: Path, bounded: bool) -> None:
    with pytest.raises(hw.GraphError, match=r"takes bounded or available_now.*leave one out"):
        job(tmp_path, job_dir=tmp_path / "job").run(bounded=bounded, available_now=True)


def test_what_is_to_go_on_needs_something_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(hw.JobError, match=r"local engine keeps nothing: each run would read everything again; run it"):
        job(tmp_path, engine="local", job_dir=tmp_path / "job").start(available_now=True)
    with pytest.raises(hw.JobError, match=r"without a job_dir nothing is kept.*give the environment a job_dir"):
        job(tmp_path).start(available_now=True)


def test_input_that_has_an_end_is_not_read_run_by_run(tmp_path: Path) -> None:
    env = hw.Environment("ended", job_dir=tmp_path / "job")
    env.source(hw.connectors.read_files(tmp_path, watch=False), "n long", name="files").print()
    with pytest.raises(
        hw.JobError, match=r"has an end: files \(parquet files in .*\); run it with bounded=True; to read f"
    ):
        env.run(available_now=True)
    assert not (tmp_path / "job").exists()
