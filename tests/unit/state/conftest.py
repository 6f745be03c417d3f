"""The backends that state must be the same on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.state.backend import StateBackend
from headwater.state.disk import backend as disk
from headwater.state.disk import timers as disk_timers
from headwater.state.disk import times as disk_times
from headwater.state.disk.backend import DiskBackend
from headwater.state.memory import MEMORY


@pytest.fixture(params=["memory", "disk", "disk that holds nothing in memory"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateBackend]:
    if request.param == "memory":
        yield MEMORY
        return
    if request.param != "disk":
        monkeypatch.setattr(disk, "HELD_BYTES", 0)
        monkeypatch.setattr(disk_timers, "HELD_TIMERS", 1)
        monkeypatch.setattr(disk_times, "HELD_ITEMS", 1)
    opened = DiskBackend("step", tmp_path)
    yield opened
    opened.close()
    assert list(tmp_path.iterdir()) == []
