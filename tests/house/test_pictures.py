"""The pictures in the documents show what the jobs in them do: drawing them again gives the same files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_pictures_are_those_of_a_run(tmp_path: Path) -> None:
    subprocess.run([sys.executable, DOCS / "pictures" / "draw_windows.py", tmp_path], check=True, timeout=120)
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert len(drawn) == 3
    for name, text in drawn.items():
        assert (DOCS / "images" / name).read_text() == text, f"{name}: run docs/pictures/draw_windows.py"
