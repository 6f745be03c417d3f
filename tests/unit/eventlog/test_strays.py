"""Segments that are none of the log's, and gaps between them, are refused by readers and writers."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest

from headwater.eventlog import Retention
from headwater.eventlog.errors import LogCorrupt


@pytest.fixture
def topic(log):
    """Ten segments, of ten rows each."""
    topic = log.create_topic(
        "t", pa.schema([("n", pa.int64())]), segment_bytes=200, retention=Retention(max_bytes=10**9)
    )
    for first in range(0, 100, 10):
        append(topic, first)
    assert len(segments(topic)) == 10
    return topic


def append(topic, first: int) -> None:
    topic.append(pa.table({"n": range(first, first + 10)}))


def segments(topic):
    return sorted((topic.path / "partition-0").glob("*.segment"))


def refused(log, *, at_end: bool = True) -> LogCorrupt:
    """What a reader and a writer that come anew say, which is the same; a reader of the end if that is concerned."""
    said = []
    uses = [lambda topic: append(topic, 0), lambda topic: list(topic.read(0, 0)), lambda topic: topic.end_offsets()]
    for use in uses if at_end else uses[:-1]:
        with pytest.raises(LogCorrupt) as caught:
            use(log.topic("t"))
        said.append(caught.value)
    assert len({str(error) for error in said}) == 1
    return said[0]


@pytest.mark.parametrize("offset", [5, 95, 105, 10**15, 10**19])
@pytest.mark.parametrize("content", ["empty", "copy"])
def test_segment_that_follows_none_is_refused(log, topic, rows, offset, content):
    stray = topic.path / "partition-0" / f"{offset:020d}.segment"
    if content == "empty":
        stray.touch()
    else:
        shutil.copy(segments(topic)[3], stray)
    error = refused(log, at_end=offset > 90)
    assert error.path == str(stray)
    stray.unlink()
    assert rows(log.topic("t")) == list(range(100))
    append(log.topic("t"), 100)
    assert rows(log.topic("t")) == list(range(110))


@pytest.mark.parametrize(
    "name", ["5.segment", "copy of 00000000000000000010.segment", "\u0660" * 19 + "\u0665.segment"]
)
def test_name_that_is_no_segments_is_refused(log, topic, rows, name):
    stray = topic.path / "partition-0" / name
    stray.touch()
    error = refused(log)
    assert (error.path, "move this file away" in str(error)) == (str(stray), True)
    with pytest.raises(LogCorrupt, match="move this file away"):
        log.topic("t").drop_from(0, 50)
    stray.unlink()
    assert rows(log.topic("t")) == list(range(100))


@pytest.mark.parametrize("name", ["notes.txt", ".00000000000000000010.segment.12.tmp", "00000000000000000005.index"])
def test_other_files_are_left_alone(log, topic, rows, name):
    (topic.path / "partition-0" / name).touch()
    assert rows(log.topic("t")) == list(range(100))
    append(log.topic("t"), 100)
    assert rows(log.topic("t")) == list(range(110))


@pytest.mark.parametrize("at", [1, 5, 8])
def test_gap_is_refused_and_can_be_given_up(log, topic, rows, at):
    segments(topic)[at].unlink()
    error = refused(log, at_end=at == 8)
    assert error.offset == at * 10
    assert f"topic.drop_from(0, {at * 10})" in str(error)
    assert log.topic("t").drop_from(0, error.offset) == at * 10
    append(log.topic("t"), at * 10)
    assert rows(log.topic("t")) == list(range(at * 10 + 10))


def test_what_retention_took_is_no_gap(log, topic, rows):
    path = segments(topic)[0]
    topic.apply_retention(now_ms=0)
    path.unlink()
    assert log.topic("t").start_offsets() == {0: 10}
    assert rows(log.topic("t"), 10) == list(range(10, 100))
