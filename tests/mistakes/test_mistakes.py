"""Deliberate mistakes of a new user: each is answered at once, in a few lines, with the fact and the way out."""

from __future__ import annotations

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
