from __future__ import annotations

import os

import pyarrow as pa
import pytest

from headwater.eventlog import Retention
from headwater.eventlog.errors import OffsetGone
from headwater.eventlog.retention import RemovedSegment, SegmentFacts

SCHEMA = pa.schema([("n", pa.int64())])


def filled(log, retention=None, appends=10, name="t"):
    """Each append of 100 rows is a segment of its own."""
    topic = log.create_topic(name, SCHEMA, segment_bytes=900, retention=retention)
    for first in range(0, appends * 100, 100):
        topic.append(pa.table({"n": range(first, first + 100)}))
    return topic


def segments(topic):
    return sorted((topic.path / "partition-0").glob("*.segment"))


FACTS = [SegmentFacts(0, 10, 1000), SegmentFacts(5, 10, 2000), SegmentFacts(9, 10, 3000), SegmentFacts(12, 10, 100)]


@pytest.mark.parametrize(
    ("retention", "now_ms", "count"),
    [
        (Retention(), 10**15, 0),
        (Retention(max_bytes=40), 0, 0),
        (Retention(max_bytes=39), 0, 1),
        (Retention(max_bytes=20), 0, 2),
        (Retention(max_bytes=0), 0, 3),
        (Retention(max_age_ms=500), 1500, 0),
        (Retention(max_age_ms=500), 1501, 1),
        (Retention(max_age_ms=500), 10**9, 3),
        (Retention(max_bytes=30, max_age_ms=500), 2501, 2),
    ],
)
def test_oldest_segments_expire_but_never_the_active_one(retention, now_ms, count):
    assert retention.expired(FACTS, now_ms) == count
    assert retention.expired([], now_ms) == retention.expired(FACTS[:1], now_ms) == 0


def test_size_is_kept_at_each_roll(log, rows):
    size = segments(filled(log, appends=1, name="one"))[0].stat().st_size
    topic = filled(log, Retention(max_bytes=3 * size))
    # The check is made when a segment begins, while it is still empty.
    assert topic.start_offsets() == {0: 600}
    assert rows(topic, 600) == list(range(600, 1000))


def test_age_counts_from_the_last_append_of_a_segment(log, rows):
    topic = filled(log, Retention(max_age_ms=60_000))
    paths = segments(topic)
    size = paths[0].stat().st_size
    for age, path in enumerate(paths):
        os.utime(path, ns=(0, age * 10_000 * 10**6))
    assert topic.apply_retention(now_ms=60_000) == []
    assert topic.apply_retention(now_ms=85_000) == [
        RemovedSegment(0, 0, 100, size),
        RemovedSegment(0, 100, 200, size),
        RemovedSegment(0, 200, 300, size),
    ]
    assert topic.start_offsets() == {0: 300}
    assert len(topic.apply_retention(now_ms=10**12)) == 6
    assert segments(topic) == paths[-1:]
    assert rows(topic, 900) == list(range(900, 1000))


def test_wall_clock_is_used_when_none_is_given(log):
    topic = filled(log, Retention(max_age_ms=3_600_000))
    os.utime(segments(topic)[0], ns=(0, 0))
    assert [gone.first_offset for gone in topic.apply_retention()] == [0]


def test_removed_offset_is_gone_with_the_way_out(log, rows):
    topic = filled(log, Retention(max_age_ms=3_600_000))
    holder = log.topic("t")
    assert holder.end_offsets() == {0: 1000}
    topic.apply_retention(now_ms=10**15)
    with pytest.raises(OffsetGone, match=r"no longer holds offset 250.*earliest kept is 900; read from 900") as caught:
        holder.read(0, 250)
    error = caught.value
    assert (error.topic, error.partition, error.offset, error.earliest) == ("t", 0, 250, 900)
    assert holder.start_offsets() == {0: 900}
    assert rows(holder, 900) == list(range(900, 1000))


def test_reader_overtaken_by_retention_is_told(log):
    topic = filled(log, Retention(max_age_ms=3_600_000))
    reading = log.topic("t").read(0, 0)
    first = next(reading)
    topic.apply_retention(now_ms=10**15)
    assert first.column("n").to_pylist() == list(range(100))
    with pytest.raises(OffsetGone) as caught:
        next(reading)
    assert (caught.value.offset, caught.value.earliest) == (100, 900)


def test_writer_that_slept_through_rolls_and_retention_finds_the_end(log, rows):
    sleeper = log.create_topic("t", SCHEMA, segment_bytes=900, retention=Retention(max_bytes=0))
    sleeper.append(pa.table({"n": range(100)}))
    follower = log.topic("t")
    assert follower.end_offsets() == {0: 100}
    other = log.topic("t")
    for first in range(100, 600, 100):
        other.append(pa.table({"n": range(first, first + 100)}))
    assert sleeper.start_offsets() == {0: 500}
    assert sleeper.append(pa.table({"n": [600]})) == (600, 601)
    assert follower.end_offsets() == {0: 601}
    assert rows(follower, 600) == [600]


def test_writer_that_slept_through_a_roll_moves_on(log, rows):
    sleeper = log.create_topic("t", SCHEMA, segment_bytes=900)
    sleeper.append(pa.table({"n": range(100)}))
    other = log.topic("t")
    other.append(pa.table({"n": range(100, 200)}))
    sleeper.append(pa.table({"n": range(200, 300)}))
    other.append(pa.table({"n": range(300, 400)}))
    assert rows(log.topic("t")) == rows(sleeper) == list(range(400))
