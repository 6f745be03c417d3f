"""The tutorial, as a reader types it: from a wheel and an empty environment to a job that was killed and is exact."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.chaos.driver import session

pytestmark = [pytest.mark.long, pytest.mark.spark, pytest.mark.recovery, pytest.mark.timeout(2400)]

PROJECT = Path(__file__).parents[2]
TUTORIAL = PROJECT / "docs" / "tutorial.md"
_FENCE = re.compile(r"^```(?P<info>sh|text)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_END_OF_STEP = "@@ end of step"


def steps() -> list[tuple[str, list[str]]]:
    """The tutorial's commands, block by block, and the lines that it shows below each."""
    found: list[tuple[str, list[str]]] = []
    for block in _FENCE.finditer(TUTORIAL.read_text()):
        if block["info"] == "sh":
            found.append((block["body"], []))
        else:
            found[-1][1].extend(block["body"].splitlines())
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder with the wheel in it."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    return tmp_path


def test_its_commands_do_what_it_says(folder: Path) -> None:
    commands = "".join(f"{body}echo '{_END_OF_STEP}'\n" for body, _ in steps())
    script = folder / "tutorial.sh"
    script.write_text(f"set -eu\n{commands}")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "PYTHON"))}
    with (folder / "said.txt").open("w") as said:
        command = [shutil.which("bash") or "bash", str(script)]
        run = subprocess.Popen(command, cwd=folder, env=clean, stdout=said, stderr=said, start_new_session=True)
        try:
            code = run.wait(timeout=2300)
        finally:
            for left in session(run.pid):
                os.kill(left, 9)
    outputs = (folder / "said.txt").read_text()
    assert code == 0, outputs[-3000:]
    for (body, expected), output in zip(steps(), outputs.split(_END_OF_STEP), strict=False):
        at = 0
        for line in expected:
            pattern = r"\s+".join(".*?" if word == "…" else re.escape(word) for word in line.split())
            match = re.compile(pattern).search(output, at)
            assert match, f"{line!r} is not in what this step said:\n{body}\n{output}"
            at = match.end()
