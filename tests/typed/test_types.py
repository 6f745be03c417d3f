"""What an editor and a type checker know of a user's program."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PROGRAM = Path(__file__).parent / "program.py"
SAID = re.compile(r":(\d+)(?::\d+)?: (?:note: Revealed type is \"(?P<type>.+)\"|error: .*\[(?P<error>[a-z-]+)\])$")


def said() -> dict[int, str]:
    """What mypy says of each line of the program."""
    command = [sys.executable, "-m", "mypy", "--no-pretty", "--show-error-codes", str(PROGRAM)]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert found.stdout, found.stderr
    lines = {}
    for match in filter(None, map(SAID.search, found.stdout.splitlines())):
        shown = match["type"] and match["type"].replace("builtins.", "").replace("typing.", "").replace("?", "")
        lines[int(match[1])] = shown or f"error: {match['error']}"
    return lines


def test_a_type_checker_knows_state_and_the_words_of_settings() -> None:
    expected = {
        number: line.rpartition("  # ")[2]
        for number, line in enumerate(PROGRAM.read_text().splitlines(), 1)
        if "reveal_type(" in line or "# error: " in line
    }
    assert said() == expected
