"""The backends that state must be the same on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.state.backend import StateBackend
from headwater.state.disk import times as disk_times
from headwater.state.disk.backend import DiskBackend
from headwater.state.disk.bound import Bound
from headwater.state.memory_backend import MEMORY


@pytest.fixture(params=["memory", "disk", "disk that holds nothing in memory"])
def backend(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateBackend]:
    if request.param == "memory":
        yield MEMORY
        return
    if request.param != "disk":
        monkeypatch.setattr(disk_times, "HELD_ITEMS", 1)
    opened = DiskBackend("step", tmp_path, Bound(64 << 20 if request.param == "disk" else 0))
    yield opened
    opened.close()
    assert list(tmp_path.iterdir()) == []
