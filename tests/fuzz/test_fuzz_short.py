"""A short run of `make fuzz`: some hundred mutations for each target, and every case that has failed once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fuzz.cases import Found, kept_seeds, run
from tests.fuzz.targets import TARGETS
from tests.parts.examples import LONG

_CASES = 20_000 if LONG else 300

pytestmark = pytest.mark.random


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_a_damaged_artefact_is_refused_or_read_as_it_was(name: str, tmp_path: Path) -> None:
    target = TARGETS[name](tmp_path)
    again = [(seed, [case]) for kept, seed, case in kept_seeds() if kept == name]
    found = [one for seed, cases in [*again, (1, range(_CASES))] for one in run(target, seed, cases)]
    assert [str(one) for one in found if isinstance(one, Found)] == []


def test_kept_seeds_are_of_targets_that_are_there() -> None:
    assert {name for name, _, _ in kept_seeds()} <= set(TARGETS)
