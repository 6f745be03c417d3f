from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import headwater as hw

SCHEMA = "k string, n long"


def joined(path: Path, **settings: Any) -> hw.Environment:
    """A job over an event log, which does not end by itself."""
    env = hw.Environment("growth", engine="local", checkpoint_interval="1 ms")
    left, right = (env.source(hw.connectors.log(path, name), SCHEMA, name=name) for name in ("orders", "users"))
    left.key_by("k").join_regular(right.key_by("k"), **settings).sink(hw.connectors.memory())
    return env


@pytest.fixture
def log(tmp_path: Path) -> Path:
    for name in ("orders", "users"):
        hw.EventLog(tmp_path).create_topic(name, SCHEMA, partitions=1)
    return tmp_path


def test_a_job_without_end_warns_of_a_step_that_keeps_every_row(log: Path) -> None:
    with pytest.warns(hw.StateGrowthWarning, match=r"step 'everything' keeps all rows.*give it ttl=") as caught:
        job = joined(log, name="everything").start()
    job.stop()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def distinct(path: Path, ttl: str | None) -> hw.Environment:
    env = hw.Environment("growth", engine="local", checkpoint_interval="1 ms")
    orders = env.source(hw.connectors.log(path, "orders"), SCHEMA)
    orders.deduplicate("k", ttl, name="once").sink(hw.connectors.memory())
    return env


def test_a_job_without_end_warns_of_a_step_that_keeps_every_key(log: Path) -> None:
    with pytest.warns(hw.StateGrowthWarning, match=r"step 'once' keeps every key of its input.*give it ttl="):
        distinct(log, None).start().stop()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        distinct(log, "1 h").start().stop()


@pytest.mark.parametrize(("bounded", "ttl"), [(True, None), (False, "1 h")])
def test_bounded_input_or_a_ttl_is_nothing_to_warn_of(log: Path, bounded: bool, ttl: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job = joined(log, ttl=ttl).start(bounded=bounded)
    job.stop()
