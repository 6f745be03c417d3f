"""Event time that stands still: who is told of it, when, and how often."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from tests.parts.waiting import until

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.job.progress.standstill import EventTimeWatch
from headwater.job.splits import SplitStatus
from headwater.plan.plan import plan_job

SCHEMA = "k string, ts long"
BY_TIME = hw.Watermarks.monotonous("ts")


class Nothing(hw.KeyedProcessFunction):
    def process(self, event: Any, ctx: hw.Context) -> None:
        """Keeps nothing and gives nothing."""


class Job:
    """Sources that meet in a step, and what was told of their splits; each epoch takes five seconds."""

    def __init__(self, caplog: pytest.LogCaptureFixture, **strategies: hw.Watermarks | None) -> None:
        env = hw.Environment("orders", engine="local")
        made = hw.connectors.generator(lambda i: ("a", i), rate=1.0)
        streams = [env.source(made, SCHEMA, strategy, name=name) for name, strategy in strategies.items()]
        streams[0].union(*streams[1:]).key_by("k").process(Nothing(), "k string").sink(hw.connectors.memory())
        env.source(made, SCHEMA, BY_TIME, name="beside").sink(hw.connectors.memory())
        self._watch, self._now_ms = EventTimeWatch(plan_job(env.graph, 2, 128)), 0
        self._log = caplog
        self.splits: dict[str, dict[str, SplitStatus]] = {}

    def epochs(self, count: int, **rows: dict[str, tuple[int, int | None]]) -> list[str]:
        """Run epochs in which each split has so many rows and, if any is said, goes on by so much; what was told."""
        self._log.clear()
        for _ in range(count):
            self._now_ms += 5_000
            for uid, told in rows.items():
                for split, (count_in, step_ms) in told.items():
                    old = self.splits.setdefault(uid, {}).get(split, SplitStatus())
                    at_ms = old.watermark_ms
                    if step_ms is not None:
                        at_ms = step_ms if at_ms == MIN_TIMESTAMP else min(MAX_TIMESTAMP, at_ms + step_ms)
                    self.splits[uid][split] = SplitStatus(old.rows_in + count_in, at_ms)
            self._watch.see({uid: dict(found) for uid, found in self.splits.items()}, self._now_ms)
        return [record.getMessage() for record in self._log.records if record.name == "headwater.time"]


GOES_ON, STANDS, QUIET = (10, 1_000), (10, None), (0, None)


def test_a_split_without_rows_is_named_once_and_again_after_it_has_recovered(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(caplog, orders=BY_TIME)
    assert job.epochs(3, orders={"0": GOES_ON, "1": GOES_ON}) == []
    assert job.epochs(4, orders={"0": GOES_ON, "1": QUIET}) == [], "four epochs are few"
    [told] = job.epochs(20, orders={"0": GOES_ON, "1": QUIET})
    assert told == (
        "job 'orders': event time has stood at 1970-01-01 00:00:03 for 25 s although rows come: it waits for split '1' "
        "of source 'orders', which has had no rows; let nobody wait for a split without rows, with .with_idleness('30 s') on "
        "the watermarks of the source, or give it rows"
    )
    assert job.epochs(3, orders={"0": GOES_ON, "1": GOES_ON}) == []
    assert len(job.epochs(20, orders={"0": GOES_ON, "1": QUIET})) == 1


def test_rows_that_do_not_move_event_time_name_the_column_or_the_generator(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(caplog, orders=BY_TIME)
    [told] = job.epochs(20, orders={"0": STANDS})
    assert "event time has not moved since the job started 25 s ago although rows come: split '0' of source" in told
    assert "'orders' has had 50 rows, none of them later than those before" in told
    assert told.endswith("see that the times in column 'ts' go up, or take event time from another column")
    job = Job(caplog, orders=hw.Watermarks.punctuated("ts", lambda row: None))
    [told] = job.epochs(20, orders={"0": STANDS})
    assert told.endswith("see that rows come that make it say more, or use hw.Watermarks.bounded(column, delay)")


def test_a_source_waits_for_another_one_only_where_they_meet(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(caplog, orders=BY_TIME, rules=BY_TIME)
    [told] = job.epochs(20, orders={"0": GOES_ON}, rules={"0": QUIET}, beside={"0": QUIET})
    assert "it waits for split '0' of source 'rules'" in told
    job = Job(caplog, orders=BY_TIME, rules=BY_TIME)
    [told] = job.epochs(20, orders={"0": GOES_ON})
    assert "although rows come: it waits for source 'rules', which has had no rows; let nobody wait" in told
    job = Job(caplog, orders=BY_TIME, rules=BY_TIME.with_idleness("1 min"))
    assert job.epochs(20, orders={"0": GOES_ON}) == []


def test_who_waits_for_nothing_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Where no rows come at all, where a split is idle or will be, where it has ended."""
    job = Job(caplog, orders=BY_TIME)
    job.epochs(1, orders={"0": GOES_ON, "1": GOES_ON})
    assert job.epochs(50, orders={"0": QUIET, "1": QUIET}) == []
    job.splits["orders"]["1"] = SplitStatus(10, 1_000, is_idle=True)
    assert job.epochs(50, orders={"0": GOES_ON}) == []
    job.splits["orders"]["1"] = SplitStatus(10, MAX_TIMESTAMP)
    assert job.epochs(50, orders={"0": GOES_ON}) == []
    soon_idle = Job(caplog, orders=BY_TIME.with_idleness("1 min"))
    assert soon_idle.epochs(15, orders={"0": GOES_ON, "1": QUIET}) == []


def test_splits_that_are_held_back_wait_as_well(caplog: pytest.LogCaptureFixture) -> None:
    job = Job(caplog, orders=BY_TIME.aligned("all", "1 s"))
    job.epochs(1, orders={"0": GOES_ON, "1": GOES_ON})
    job.epochs(2, orders={"0": GOES_ON, "1": QUIET})
    [told] = job.epochs(20, orders={"0": QUIET, "1": QUIET})
    assert "it waits for split '1'" in told


def test_a_running_job_tells_and_knows_its_splits(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topic = hw.EventLog(tmp_path).create_topic("orders", hw.Schema.of(SCHEMA).arrow, partitions=2)
    env = hw.Environment("orders", engine="local", checkpoint_interval="1 ms")
    orders = env.source(hw.connectors.log(tmp_path, "orders"), SCHEMA, BY_TIME, name="orders")
    orders.key_by("k").process(Nothing(), "k string").sink(hw.connectors.memory())

    def write(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED:
            topic.append([("a", 1_000 * epoch)], partition=0)

    with caplog.at_level(logging.WARNING, "headwater.time"):
        job = env.start(on_step=write, clock=lambda epoch: 5_000 * (epoch + 1))
        until(lambda: job.status().epoch >= 12, job)
        job.stop()
    [record] = caplog.records
    assert (record.name, record.levelname) == ("headwater.time", "WARNING")
    assert "it waits for split '1' of source 'orders'" in record.getMessage()
    busy, quiet = job.status().splits["orders"].values()
    assert busy.rows_in >= 12
    assert busy.last_rows_ms is not None
    assert (quiet.rows_in, quiet.watermark_ms, quiet.last_rows_ms) == (0, MIN_TIMESTAMP, None)
