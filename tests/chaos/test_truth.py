"""The suite itself, without Spark: the truth is what the job comes to, and a row too many or too few is seen."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tests.chaos.events import Events
from tests.chaos.feed import Feed
from tests.chaos.job import build
from tests.chaos.plan import KILLS, Act, Plan
from tests.chaos.truth import differences

TICKS = 90


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Events]:
    """The job on the local engine, in epochs that cut the input anywhere."""
    folder = tmp_path_factory.mktemp("chaos")
    events = Events(seed=3)
    feed = Feed(folder, folder, events)
    for _ in range(TICKS):
        feed.append()
    build(folder, folder, engine="local", max_rows_per_epoch=500).run(bounded=True)
    return folder, events


def test_job_comes_to_the_truth(run: tuple[Path, Events]) -> None:
    folder, events = run
    found = differences(folder, events)
    assert {name for name, one in found.items() if one.is_none} == found.keys()
    assert {name for name, one in found.items() if not one.rows} == {"late"}
    assert {order.kind for order in events.orders} == {"order", "cancel", "straggler"}


@pytest.mark.parametrize("name", ["windows", "followed", "pairs", "revenue"])
def test_file_that_is_missing_or_there_twice_is_seen(run: tuple[Path, Events], name: str) -> None:
    folder, events = run
    path = min(path for path in (folder / name).iterdir() if path.is_file())
    content = path.read_bytes()
    again = path.with_name(f"again-{path.name}")
    again.write_bytes(content)
    twice = differences(folder, events)[name]
    again.unlink()
    path.unlink()
    missing = differences(folder, events)[name]
    path.write_bytes(content)
    assert (twice.lost.total(), missing.doubled.total()) == (0, 0)
    assert twice.doubled.total() == missing.lost.total() == (twice.rows - missing.rows) // 2 > 0


def test_same_seed_gives_the_same_events_and_the_same_plan() -> None:
    one, other = Events(7), Events(7)
    assert [one.tick(None) for _ in range(50)] == [other.tick(None) for _ in range(50)]
    assert Plan.of(50, 7) == Plan.of(50, 7) != Plan.of(50, 8)


@pytest.mark.parametrize("kills", [1, 3, 20, 200])
def test_plan_has_all_kills_and_ends_with_one_of_the_driver(kills: int) -> None:
    acts = Plan.of(kills, 1).acts
    done = Counter(acts)
    assert sum(done[act] for act in KILLS) == kills
    assert all(done[act] for act in (Act.DAMAGED, Act.DISK_FULL, Act.STALLED))
    assert [act for act in acts if act is not Act.DAMAGED][-1] is Act.DRIVER
    assert all(acts[at - 1] is Act.DRIVER for at, act in enumerate(acts) if act is Act.DAMAGED)
