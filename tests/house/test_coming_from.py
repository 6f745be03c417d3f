"""The pages for those who come from other systems: every name of ours in their tables exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.parts.known_commands import unknown
from tests.parts.known_names import Reader

FOLDER = Path(__file__).parents[2] / "docs" / "coming-from"
PAGES = sorted(FOLDER.glob("*.md"))
AT_HAND = """
env = hw.Environment("x")
stream = env.from_rows([], "a int")
keyed = stream.key_by("a")
windowed = keyed.window(hw.tumbling("1 min"))
job = env.start()
"""
"""What the tables call by these names."""


def told(page: Path) -> list[str]:
    """The code in the second column of the page's tables."""
    rows = [line.split(" | ") for line in page.read_text().splitlines() if line.startswith("| ")]
    return [code for cells in rows for code in re.findall(r"`([^`]+)`", cells[1])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_python_name_exists(page: Path) -> None:
    reader = Reader()
    reader.read(AT_HAND + "ctx = hw.Context()")
    codes = [code for code in told(page) if not code.startswith("headwater ")]
    assert len(codes) > 30
    for code in codes:
        reader.read(code)
    assert reader.missing == []


def test_every_command_and_option_exists() -> None:
    commands = [code.split()[1:] for page in PAGES for code in told(page) if code.startswith("headwater ")]
    assert len(commands) > 5
    assert [words for words in commands if unknown(words)] == []
