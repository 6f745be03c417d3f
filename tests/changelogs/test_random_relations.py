from __future__ import annotations

import random
from collections import Counter

import pytest
from tests.changelogs.relations import RelationMaker, held
from tests.parts.examples import LONG

import headwater as hw
from headwater.graph.describe import describe

CASES = 2_000 if LONG else 100
_A_TEST = 25
"""Cases of one test."""


@pytest.mark.random
@pytest.mark.parametrize("first", range(0, CASES, _A_TEST))
def test_what_changes_leave_is_what_the_rows_that_are_left_give(first: int) -> None:
    for seed in range(first, min(first + _A_TEST, CASES)):
        check_relation(seed)


def check_relation(seed: int) -> None:
    """One job of random steps over random changes, cut into random epochs; `seed` makes it again."""
    chance = random.Random(-1 - seed)
    env = hw.Environment(
        "relations",
        engine="local",
        parallelism=chance.randrange(1, 4),
        max_rows_per_epoch=chance.choice([1, 2, 3, 5, 100]),
        state_backend=chance.choice(["memory", "memory", "memory", "disk"]),
    )
    relation = RelationMaker(seed, env).relation(chance.randrange(1, 5))
    found = held(relation.stream.collect(), relation.stream.changelog.key)
    assert found == Counter(relation.rows), f"seed {seed}\n{describe(env.graph)}"
