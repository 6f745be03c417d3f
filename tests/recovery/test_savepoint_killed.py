"""The driver and everything it started, killed while it takes a savepoint and while it goes on from one."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import saving_job
import totals_job

import headwater as hw
from headwater.savepoints.files import Savepoint

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(1500)]

JOB = Path(saving_job.__file__)
SAVED = 4
"""The epoch that jobs go on from."""
Epochs = dict[tuple[str, int], Counter[Any]]
"""What was published, by sink and epoch: at another parallelism the same rows are in other files."""


class Saved(NamedTuple):
    folder: Path
    """The job, killed when its savepoint was complete; what it has published is from before the savepoint."""
    savepoint: Path
    incomplete: list[Path]


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
def saved(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A job killed while it takes a savepoint: when one level is written, when all is, when it is complete."""
    folder = tmp_path_factory.mktemp("saved")
    paths = [str(folder / f"savepoint-{number}") for number in range(3)]
    run(folder, log, save=paths[0], at=1, kill_saving=("WRITING", 1))
    run(folder, log, save=paths[1], at=3, kill_saving=("WRITTEN", 0), taken=paths[0])
    run(folder, log, save=paths[2], at=SAVED, kill_saving=("COMPLETE", 0), holds=True)
    return Saved(folder, Path(paths[2]), [Path(path) for path in paths[:2]])


def test_savepoint_that_was_being_taken_is_refused_and_the_job_goes_on(
    saved: Saved, log: Path, expected: Epochs, tmp_path: Path
) -> None:
    for path in saved.incomplete:
        assert list(path.rglob("*.parquet")), "it was killed in the middle"
        with pytest.raises(hw.SavepointError, match=r"is incomplete: it has no savepoint.json"):
            totals_job.build(tmp_path, log=log, engine="local").start(from_=path)
    assert Savepoint.open(saved.savepoint).description.epoch == SAVED
    assert published(saved.folder) == {at: rows for at, rows in expected.items() if at[1] <= SAVED}
    folder = shutil.copytree(saved.folder, tmp_path / "goes on")
    run(folder, log)
    assert published(folder) == expected


def test_restored_job_killed_at_each_step_of_its_first_epoch(
    saved: Saved, log: Path, expected: Epochs, tmp_path: Path
) -> None:
    """The outputs are those of the job before; every other start is told of the savepoint again."""
    folder = shutil.copytree(saved.folder, tmp_path / "handed over")
    (folder / "job").rename(folder / "old")
    restored: dict[str, Any] = {"from_": str(saved.savepoint), "parallelism": 3}
    again = {"parallelism": 3}
    run(folder, log, kill=("open", 1), **restored)
    for number, step in enumerate(hw.EpochStep):
        run(folder, log, kill=(step.name, SAVED + 1), **(restored if number % 2 else again))
        is_published = step >= hw.EpochStep.PUBLISHED
        seen = published(folder)
        assert seen == {at: rows for at, rows in expected.items() if at in seen}, f"after {step.name}"
        assert max(epoch for _, epoch in seen) == SAVED + (step >= hw.EpochStep.PUBLISHING), f"after {step.name}"
        assert is_published <= (len(seen) == 2 * (SAVED + 2)), f"after {step.name}"
    refused = run(folder, log, job_dir="old", returns=1)
    assert "PublishError" in refused
    assert "was handed over to job" in refused
    run(folder, log, kill=("PUBLISHING", SAVED + 2), **again)
    run(folder, log, **restored)
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
        run(folder, log, engine="local", save=str(path), at=at, kill_saving=step, holds=True)
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


def run(folder: Path, log: Path, *, returns: int | None = None, **options: Any) -> str:
    command = [sys.executable, str(JOB), str(folder), str(log), json.dumps(options)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=400,
        check=False,
        start_new_session=True,
        cwd=folder,
    )
    is_killed = options.keys() & {"kill", "kill_saving"}
    assert done.returncode == (returns or (-signal.SIGKILL if is_killed else 0)), done.stdout[-3000:]
    return done.stdout


def published(folder: Path) -> Epochs:
    found: Epochs = {}
    for name, rows in totals_job.published(folder).items():
        sink, _, epoch, *_ = name.split("-")
        found.setdefault((sink, int(epoch)), Counter()).update(tuple(row.items()) for row in rows)
    return found
