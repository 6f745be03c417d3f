"""A job between DataFrames, killed while a micro-batch is put down, and crashed there and at the steps of its epochs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import frames_job
import pytest
from crash import Crash, Crashed

import headwater as hw
from headwater.connectors.batches import Batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(1500)]

CRASHES = [("MANIFEST", 0), ("PUBLISHING", 1), ("CLEANED", 1)]


def test_every_row_is_published_once_as_it_was_put_down(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, out = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    out.mkdir()
    frames_job.write_input(given)
    _run_and_kill(out, given)
    with monkeypatch.context() as patched:
        patched.setattr(Batches, "complete", frames_job.die_when_put_down(3, _crash))
        with pytest.raises(hw.SourceError, match="when a micro-batch was put down"):
            frames_job.build(out, given, spark).run(bounded=True)
    for step, epoch in CRASHES:
        crash = Crash(step, epoch)
        with crash.is_seen():
            frames_job.build(out, given, spark).run(bounded=True, on_step=crash)
    frames_job.build(out, given, spark).run(bounded=True)
    luck = frames_job.put_down(out)
    found = frames_job.published(out)
    assert [(n, chance) for n, chance, _ in found["files"]] == sorted(luck.items())
    assert found["frames"] == found["files"]
    assert sorted(luck) == list(range(frames_job.ROWS))
    each = frames_job.ROWS // 5
    assert sorted(count for _, _, count in found["files"]) == sorted(list(range(1, each + 1)) * 5)


def _crash() -> NoReturn:
    raise Crashed("when a micro-batch was put down")


def _run_and_kill(folder: Path, given: Path) -> None:
    """A driver that is killed when its first micro-batch is put down."""
    command = [sys.executable, str(frames_job.__file__), str(folder), str(given), "0"]
    done = subprocess.run(
        command, capture_output=True, text=True, start_new_session=True, cwd=folder, timeout=300, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr[-3000:]
