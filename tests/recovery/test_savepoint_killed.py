"""A driver that is killed while it takes a savepoint, and one that crashes at every step while it goes on from one."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import saving_job
import totals_job
from crash import Crash

import headwater as hw
from headwater.savepoints.files import Savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(1500)]

JOB = Path(saving_job.__file__)
SAVED = 4
"""The epoch that jobs go on from."""
Epochs = dict[tuple[str, int], Counter[Any]]
"""What was published, by sink and epoch: at another parallelism the same rows are in other files."""


class Saved(NamedTuple):
    folder: Path
    """The job, which ended when its savepoint was complete; what it has published is from before the savepoint."""
    savepoint: Path
    incomplete: Path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    totals_job.write_events(folder)
    return folder


@pytest.fixture(scope="module")
def expected(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Epochs:
    """What the uninterrupted run publishes."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    totals_job.build(folder, log=log, engine="local").run(bounded=True)
    return published(folder)


@pytest.fixture(scope="module")
def saved(log: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A job killed while it takes a savepoint, when one level is written; then crashed when another is complete."""
    folder = tmp_path_factory.mktemp("saved")
    incomplete, savepoint = folder / "savepoint-0", folder / "savepoint-1"
    run_and_kill(folder, log, save=str(incomplete), at=1, kill_saving=("WRITING", 1))
    with pytest.raises(hw.JobError, match="Crashed: when the savepoint was complete"):
        run(folder, log, spark, save=str(savepoint), at=SAVED, taken=str(incomplete), holds=True, crash_saved=True)
    return Saved(folder, savepoint, incomplete)


def test_savepoint_that_was_being_taken_is_refused_and_the_job_goes_on(
    saved: Saved, log: Path, expected: Epochs, spark: SparkSession, tmp_path: Path
) -> None:
    assert list(saved.incomplete.rglob("*.parquet")), "it was killed in the middle"
    with pytest.raises(hw.SavepointError, match=r"is incomplete: it has no savepoint.json"):
        totals_job.build(tmp_path, log=log, engine="local").start(from_=saved.incomplete)
    assert Savepoint.open(saved.savepoint).description.epoch == SAVED
    assert published(saved.folder) == {at: rows for at, rows in expected.items() if at[1] <= SAVED}
    folder = shutil.copytree(saved.folder, tmp_path / "goes on")
    run(folder, log, spark)
    assert published(folder) == expected


def test_restored_job_crashed_at_each_step_of_its_first_epoch(
    saved: Saved, log: Path, expected: Epochs, spark: SparkSession, tmp_path: Path
) -> None:
    """The outputs are those of the job before; every other start is told of the savepoint again."""
    folder = shutil.copytree(saved.folder, tmp_path / "handed over")
    (folder / "job").rename(folder / "old")
    restored: dict[str, Any] = {"from_": str(saved.savepoint), "parallelism": 3}
    again = {"parallelism": 3}
    run_and_kill(folder, log, kill_opening=1, **restored)
    for number, step in enumerate(hw.EpochStep):
        crash = Crash(step.name, SAVED + 1)
        with crash.is_seen():
            run(folder, log, spark, crash, **(restored if number % 2 else again))
        is_published = step >= hw.EpochStep.PUBLISHED
        seen = published(folder)
        assert seen == {at: rows for at, rows in expected.items() if at in seen}, f"after {step.name}"
        assert max(epoch for _, epoch in seen) == SAVED + (step >= hw.EpochStep.PUBLISHING), f"after {step.name}"
        assert is_published <= (len(seen) == 2 * (SAVED + 2)), f"after {step.name}"
    with pytest.raises(hw.PublishError, match="was handed over to job"):
        run(folder, log, spark, job_dir="old")
    crash = Crash("PUBLISHING", SAVED + 2)
    with crash.is_seen():
        run(folder, log, spark, crash, **again)
    run(folder, log, spark, **restored)
    assert published(folder) == expected


def test_savepoints_killed_at_any_moment_are_whole_or_refused(log: Path, expected: Epochs, tmp_path: Path) -> None:
    """On the local engine, of which a process starts faster; the moments between the steps are left to chance."""
    chance = random.Random(5)
    complete = 0
    steps = [("BEGUN", 0), ("WRITING", 0), ("WRITING", 2), ("WRITTEN", 0), ("COMPLETE", 0)]
    for number, step in enumerate(steps):
        folder = tmp_path / str(number)
        folder.mkdir()
        path, at = folder / "savepoint", chance.randrange(totals_job.EPOCHS - 1)
        run_and_kill(folder, log, engine="local", save=str(path), at=at, kill_saving=step, holds=True)
        if step[0] == "COMPLETE":
            shutil.rmtree(folder / "initials" / "_headwater")
            shutil.rmtree(folder / "totals" / "_headwater")
            totals_job.build(folder, log=log, engine="local", parallelism=5).run(from_=path, bounded=True)
            assert published(folder) == expected
            complete += 1
        else:
            with pytest.raises(hw.SavepointError, match=r"is incomplete: it has no savepoint.json"):
                Savepoint.open(path)
    assert complete == 1


def run(folder: Path, log: Path, spark: SparkSession, crash: Crash | None = None, **options: Any) -> None:
    saving_job.run(folder, log, saving_job.Options(**options), crash, spark=spark)


def run_and_kill(folder: Path, log: Path, **options: Any) -> None:
    done = subprocess.run(
        [sys.executable, str(JOB), str(folder), str(log), json.dumps(options)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
        start_new_session=True,
        cwd=folder,
    )
    assert done.returncode == -signal.SIGKILL, done.stdout[-3000:]


def published(folder: Path) -> Epochs:
    found: Epochs = {}
    for name, rows in totals_job.published(folder).items():
        sink, _, epoch, *_ = name.split("-")
        found.setdefault((sink, int(epoch)), Counter()).update(tuple(row.items()) for row in rows)
    return found
