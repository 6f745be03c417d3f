"""A job tells of the full disk that an epoch waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.spark import waiting


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> waiting.LocalDisk:
    """One that is looked at each time."""
    monkeypatch.setattr(waiting, "_LONG_S", 0.0)
    return waiting.LocalDisk("totals", tmp_path)


def test_epoch_that_runs_for_long_on_a_full_disk_is_told_of(
    disk: waiting.LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "_LITTLE_BYTES", 1 << 60)
    disk.look(4, lambda: True)
    assert not caplog.records, "it is a new epoch"
    disk.look(4, lambda: False)
    assert not caplog.records, "the job has nothing to do"
    disk.look(4, lambda: True)
    (told,) = caplog.messages
    assert f"job 'totals': no epoch was published for 0 s, and the disk of Spark's local files {tmp_path} has" in told
    assert "make room" in told


def test_epoch_that_runs_for_long_with_room_is_left_alone(
    disk: waiting.LocalDisk, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(waiting, "_LITTLE_BYTES", 0)
    for _ in range(3):
        disk.look(4, lambda: True)
    assert not caplog.records
