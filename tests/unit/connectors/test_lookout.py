"""The lookout over a folder: what an idle look costs, and that it misses nothing."""

from __future__ import annotations

import glob
import os
from pathlib import Path
from typing import Any

import pytest

from headwater.connectors.files.lookout import Lookout


@pytest.mark.parametrize("pattern", ["*.csv", "**/*.csv"])
def test_a_folder_in_which_nothing_changed_is_not_listed_again(
    tmp_path: Path, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, below = tmp_path / "in", tmp_path / "in" / "below"
    below.mkdir(parents=True)
    listed = 0
    known_glob = glob.iglob

    def iglob(*given: Any, **named: Any) -> Any:
        nonlocal listed
        listed += 1
        return known_glob(*given, **named)

    monkeypatch.setattr(glob, "iglob", iglob)
    lookout = Lookout(folder, pattern, "modified", 0)
    known: set[str] = set()

    def look() -> list[str]:
        found = [file.path for file in lookout.look(known, tmp_path / "clock").settled]
        known.update(found)
        return found

    def write(name: str, *, long_ago: bool) -> None:
        (folder / name).write_text("1")
        if long_ago:
            for place in (folder, below):
                os.utime(place, (1_000, 1_000))

    for number in range(5):
        write(f"{number}.csv", long_ago=True)
    assert len(look()) == 5
    assert look() == []
    before = listed
    for _ in range(10):
        assert look() == []
    assert listed == before  # however many files there are
    write("more.csv", long_ago=False)
    assert look() == ["more.csv"]
    write("again.csv", long_ago=False)  # within a tick of the clock, which the folder's time may not tell
    assert look() == ["again.csv"]
    write("below/one.csv", long_ago=False)
    assert look() == (["below/one.csv"] if "**" in pattern else [])
