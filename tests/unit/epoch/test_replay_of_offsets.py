from __future__ import annotations

from pathlib import Path

import pytest

import headwater as hw
from headwater.epoch.offset import Offset
from headwater.job.checkpoints.replay import PlannedEpoch, Replay
from headwater.job.layout import OutboxLayout


def offset(epoch: int) -> Offset:
    return Offset(epoch + 1, end=False, positions={"rows": {"0": 10 * epoch}}, now_ms=epoch)


@pytest.fixture
def replay(tmp_path: Path) -> Replay:
    Replay({epoch: PlannedEpoch(offset(epoch), committed=epoch == 4) for epoch in (4, 5)}).write_into(
        OutboxLayout(tmp_path)
    )
    return Replay.in_outbox(OutboxLayout(tmp_path))


def test_epochs_get_the_offsets_they_had_and_later_ones_are_planned(replay: Replay) -> None:
    assert replay.next_offset(offset(2)) is None
    assert replay.next_offset(offset(3)) == offset(4)
    assert replay.next_offset(offset(4)) == offset(5)
    assert replay.next_offset(offset(5)) is None
    assert [replay.was_committed(epoch) for epoch in (3, 4, 5)] == [False, True, False]


def test_the_file_goes_when_a_later_epoch_is_computed(replay: Replay, tmp_path: Path) -> None:
    assert replay.after(5, OutboxLayout(tmp_path)) is replay
    assert Replay.in_outbox(OutboxLayout(tmp_path)) == replay
    assert replay.after(6, OutboxLayout(tmp_path)) == Replay.in_outbox(OutboxLayout(tmp_path)) == Replay()


def test_a_damaged_file_is_told(replay: Replay, tmp_path: Path) -> None:
    (tmp_path / "replay.json").write_text('{"epochs": [{}]}')
    with pytest.raises(hw.JobError, match=r"replay\.json cannot be read"):
        Replay.in_outbox(OutboxLayout(tmp_path))
