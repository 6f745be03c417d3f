from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.job.checkpoints.replay import PlannedEpoch, Replay


def offset(epoch: int) -> dict[str, Any]:
    return {"epoch": epoch + 1, "end": False, "positions": {"rows": {"0": 10 * epoch}}, "now_ms": epoch}


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    Replay({epoch: PlannedEpoch(offset(epoch), committed=epoch == 4) for epoch in (4, 5)}).write(tmp_path)
    return Replay.read(tmp_path)


def test_epochs_get_the_offsets_they_had_and_later_ones_are_planned(replay: Replay) -> None:
    assert replay.next_offset(offset(2)) is None
    assert replay.next_offset(offset(3)) == offset(4)
    assert replay.next_offset(offset(4)) == offset(5)
    assert replay.next_offset(offset(5)) is None
    assert [replay.was_committed(epoch) for epoch in (3, 4, 5)] == [False, True, False]


def test_the_file_goes_when_a_later_epoch_is_computed(replay: Replay, tmp_path: Path) -> None:
    replay.remove_when_done(tmp_path, 5)
    assert Replay.read(tmp_path).epochs == replay.epochs
    replay.remove_when_done(tmp_path, 6)
    assert (replay.epochs, Replay.read(tmp_path).epochs) == ({}, {})


def test_a_damaged_file_is_told(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "replay.json").write_text('{"epochs": [{}]}')
    with pytest.raises(hw.JobError, match=r"replay\.json cannot be read"):
        Replay.read(tmp_path)
