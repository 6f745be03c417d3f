"""Deliberate mistakes of a new user: each is answered at once, in a few lines, with the fact and the way out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.mistakes import building, folders, functions, runs
from tests.mistakes.mistake import MOST_LINES, Mistake

MISTAKES = [
    one for module in (building, functions, folders, runs) for one in vars(module).values() if isinstance(one, Mistake)
]


@pytest.mark.timeout(60)  # a mistake takes far less than a second; this is for one that hangs
@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_the_answer_names_the_fact_and_the_way_out(mistake: Mistake, tmp_path: Path) -> None:
    answer = mistake.answer(tmp_path)
    assert [part for part in mistake.says if part not in answer] == [], answer
    assert len(answer.splitlines()) <= MOST_LINES, answer


PROGRAM = """\
import logging
import headwater as hw
logging.getLogger("headwater").setLevel({level!r})
env = hw.Environment("shop", engine="local")
env.from_rows([("ann", 3.0)], "user string, amount double").select("user", "amout * 2 as twice").print()
"""


@pytest.mark.parametrize(("level", "shows_all"), [("WARNING", False), ("DEBUG", True)])
def test_a_program_that_ends_with_an_error_shows_its_own_line(level: str, shows_all: bool, tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(PROGRAM.format(level=level))
    run = [sys.executable, "job.py"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    told = "headwater.errors.SchemaError: step 'select': there is no field 'amout'; the fields are user, amount"
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0], lines[-1]) == (1, "Traceback (most recent call last):", told)
    assert 'job.py", line 5, in <module>' in lines[1]
    assert ("binding.py" in done.stderr) == shows_all == (len(lines) > MOST_LINES)


def test_errors_of_others_are_shown_as_they_were_by_whoever_shows_them(tmp_path: Path) -> None:
    others = "import sys\nsys.excepthook = lambda kind, error, frames: print('mine:', error)\nimport headwater\n1 / 0\n"
    run = [sys.executable, "-c", others]
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("mine: division by zero\n", "")
