from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater as hw
from headwater.epoch.manifest import Manifest, Published
from headwater.job import lock
from headwater.job.folder import JobFolder
from headwater.job.identity import JobIdentity
from headwater.job.layout import FORMAT, JobLayout
from headwater.job.lock import Owner
from headwater.job.reading import JobReader
from headwater.plan.plan import plan_job

SHAPE = {"parallelism": 3, "key groups": 128, "sources": ["rows"], "steps": {"a": {"level": 1}, "b": {"level": 2}}}
HOLD = (
    "import sys; from pathlib import Path; from headwater.job import lock\n"
    "held = lock.take(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
)


@pytest.fixture
def layout(tmp_path: Path) -> JobLayout:
    layout = JobLayout(tmp_path / "job")
    layout.outbox.path.mkdir(parents=True)
    JobIdentity("sums", "id", SHAPE).write(layout.job)
    return layout


@pytest.fixture
def elsewhere(layout: JobLayout) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the folder's lock."""
    command = [sys.executable, "-c", HOLD, str(layout.lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()
        process.communicate()


def test_a_folder_is_read_without_a_trace(layout: JobLayout) -> None:
    before = sorted(layout.path.rglob("*"))
    job = JobReader(layout.path)
    assert (job.identity.name, job.identity.levels, job.identity.parallelism) == ("sums", 2, 3)
    assert (job.published(), job.restarts(), job.owner(), job.is_staged(0)) == (Published(-1), (), None, False)
    assert (job.stored().logged(), job.stored().committed()) == ([], [])
    Manifest(0, ()).write(layout.outbox.manifest(0))
    assert job.is_staged(0)
    assert sorted(layout.path.rglob("*")) == sorted([*before, layout.outbox.manifest(0)])


def test_a_folder_without_a_job_is_told_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(hw.JobError, match=r"none is not the folder of a job: there is no such folder"):
        JobReader(tmp_path / "none").published()
    assert not (tmp_path / "none").exists()


def test_a_folder_of_a_newer_version_is_refused_and_stays_as_it_is(layout: JobLayout) -> None:
    newer = FORMAT + 1
    text = f'{{"format": {newer}, "what": "ever"}}'
    layout.job.write_text(text)
    told = rf"job\.json cannot be read: it is of version {newer}, .* use the newer Headwater"
    with pytest.raises(hw.JobError, match=told):
        JobReader(layout.path).identity  # noqa: B018
    env = hw.Environment("sums", engine="local")
    env.from_rows([], "n long").sink(hw.connectors.memory())
    folder = JobFolder(layout.path)
    with pytest.raises(hw.JobError, match="use the newer Headwater"):
        folder.claim(plan_job(env.graph, 1, 128))
    folder.close()
    assert layout.job.read_text() == text


def test_who_runs_a_job_is_seen_without_taking_its_lock(layout: JobLayout, elsewhere: subprocess.Popen[str]) -> None:
    job = JobReader(layout.path)
    assert job.owner() == Owner(elsewhere.pid, socket.gethostname())
    elsewhere.kill()
    elsewhere.wait()
    assert job.owner() is None, "it died, and its name still stands in the file"
    held = lock.take(layout.lock)
    assert job.owner() == Owner(os.getpid(), socket.gethostname())
    lock.give_up(held)
    assert (job.owner(), layout.lock.read_text()) == (None, "")


@pytest.mark.parametrize(("text", "owner"), [("", None), ("7", None), ("x on y", None), ("7 on far", Owner(7, "far"))])
def test_an_owner_elsewhere_is_believed(layout: JobLayout, text: str, owner: Owner | None) -> None:
    layout.lock.write_text(text)
    assert JobReader(layout.path).owner() == owner


def test_where_locks_are_not_listed_a_process_that_lives_has_its_lock(
    layout: JobLayout, elsewhere: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(lock, "_LOCKS", tmp_path / "missing")
    assert JobReader(layout.path).owner() == Owner(elsewhere.pid, socket.gethostname())
    elsewhere.kill()
    elsewhere.wait()
    assert JobReader(layout.path).owner() is None
