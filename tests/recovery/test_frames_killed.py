"""A job between DataFrames, killed while a micro-batch is put down and at the steps of its epochs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import frames_job
import pytest

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(1500)]

KILLS = [(frames_job.PUT_DOWN, 0), (frames_job.PUT_DOWN, 3), ("MANIFEST", 0), ("PUBLISHING", 1), ("CLEANED", 1)]


def test_every_row_is_published_once_as_it_was_put_down(tmp_path: Path) -> None:
    given, out = tmp_path / "in", tmp_path / "out"
    given.mkdir()
    out.mkdir()
    frames_job.write_input(given)
    for step, number in KILLS:
        _run(out, given, step, str(number))
    _run(out, given)
    luck = frames_job.put_down(out)
    found = frames_job.published(out)
    assert [(n, chance) for n, chance, _ in found["files"]] == sorted(luck.items())
    assert found["frames"] == found["files"]
    assert sorted(luck) == list(range(frames_job.ROWS))
    each = frames_job.ROWS // 5
    assert sorted(count for _, _, count in found["files"]) == sorted(list(range(1, each + 1)) * 5)


def _run(folder: Path, given: Path, *kill_at: str) -> None:
    command = [sys.executable, str(frames_job.__file__), str(folder), str(given), *kill_at]
    done = subprocess.run(
        command, capture_output=True, text=True, start_new_session=True, cwd=folder, timeout=300, check=False
    )
    assert done.returncode == (-signal.SIGKILL if kill_at else 0), (kill_at, done.stderr[-3000:])
