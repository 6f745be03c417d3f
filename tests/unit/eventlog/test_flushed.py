"""Rows that were flushed are all read, or an error says that they are not; and what the note of it may be."""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.eventlog import EventLog, conform
from headwater.eventlog.errors import LogCorrupt, LogFormatUnknown, OffsetGone
from headwater.eventlog.flushed import FILE_NAME, Flushed, advance_flushed, read_flushed
from headwater.eventlog.frame import HEADER_BYTES

NUMBERS = pa.schema([("n", pa.int64())])


def append(topic, first: int, count: int = 10) -> None:
    topic.append(pa.table({"n": range(first, first + count)}))


def partition(topic) -> Path:
    return topic.path / "partition-0"


def segments(topic):
    return sorted(partition(topic).glob("*.segment"))


def refusals(log, name: str = "numbers") -> list[LogCorrupt]:
    """What a reader and a writer that come anew say."""
    found = []
    for use in (
        lambda topic: topic.end_offsets(),
        lambda topic: list(topic.read(0, 0)),
        lambda topic: append(topic, 0),
    ):
        with pytest.raises(LogCorrupt) as caught:
            use(log.topic(name))
        found.append(caught.value)
    return found


def test_every_byte_of_a_flushed_last_append_is_missed_when_it_is_cut_or_flipped(log, numbers, rows, monkeypatch):
    append(numbers, 0)
    (path,) = segments(numbers)
    before = path.stat().st_size
    monkeypatch.setattr(conform, "FRAME_BYTES", 80)
    append(numbers, 10, 25)
    numbers.flush()
    monkeypatch.undo()
    data = path.read_bytes()
    for at in [*range(before, before + HEADER_BYTES + 20), *range(before, len(data), 37), len(data) - 1]:
        damaged = bytearray(data)
        damaged[at] ^= 0x10
        for content in (data[:at], bytes(damaged)):
            path.write_bytes(content)
            try:
                assert rows(log.topic("numbers")) == list(range(35)), "the header's unused zero"
            except LogCorrupt:
                for error in refusals(log):
                    assert (error.path, error.topic, error.partition) == (str(path), "numbers", 0)
                    assert re.search(r"topic\.drop_from\(0, (10|20|30)\)", str(error))
            assert path.read_bytes() == content, "nothing is cut behind one's back"


def test_rows_flushed_before_a_torn_append_are_read(log, numbers, rows):
    append(numbers, 0)
    numbers.flush()
    (path,) = segments(numbers)
    whole = path.read_bytes()
    append(numbers, 10)
    for length in range(len(whole), path.stat().st_size):
        torn = whole + path.read_bytes()[len(whole) : length]
        copy = log.path.parent / f"copy-{length}"
        shutil.copytree(log.path, copy)
        (copy / "numbers" / "partition-0" / path.name).write_bytes(torn)
        topic = EventLog(copy).topic("numbers")
        assert rows(topic) == list(range(10))
        append(topic, 10)
        assert rows(EventLog(copy).topic("numbers")) == list(range(20))


def test_reader_that_lives_long_misses_what_it_had_not_seen(log, numbers):
    append(numbers, 0)
    follower = log.topic("numbers")
    assert follower.end_offsets() == {0: 10}
    (path,) = segments(numbers)
    first = path.read_bytes()
    append(numbers, 10)
    numbers.flush()
    path.write_bytes(first)
    with pytest.raises(LogCorrupt, match="rows up to offset 20 had been flushed"):
        follower.end_offsets()


def test_newest_segment_that_is_gone_is_missed(log, rows):
    topic = log.create_topic("numbers", NUMBERS, segment_bytes=300)
    for first in range(0, 50, 10):
        append(topic, first)
    *_, newest = segments(topic)
    newest.unlink()
    for error in refusals(log):
        assert error.path == str(newest)
    log.topic("numbers").drop_from(0, error.offset)
    assert rows(log.topic("numbers")) == list(range(error.offset))
    append(log.topic("numbers"), error.offset)
    assert rows(log.topic("numbers")) == list(range(error.offset + 10))


def test_what_was_given_up_is_not_missed(log, numbers, rows):
    other = log.topic("numbers")
    append(numbers, 0)
    append(other, 10)
    other.flush()
    (path,) = segments(numbers)
    path.write_bytes(path.read_bytes()[:-1])
    assert log.topic("numbers").drop_from(0, 15) == 10
    append(other, 10, 1)
    other.flush()
    numbers.flush()  # it had an append before, in a file that is not there any more
    assert rows(log.topic("numbers")) == [*range(10), 10]
    assert read_flushed(partition(numbers)) == Flushed(0, segments(numbers)[0].stat().st_size, 11)


@pytest.mark.parametrize("content", [None, b"", b"\0" * 36, b"\0" * 5, b"x" * 100])
def test_log_without_a_note_is_read_as_far_as_it_is_whole(log, numbers, rows, content):
    append(numbers, 0)
    append(numbers, 10)
    numbers.flush()
    note = partition(numbers) / FILE_NAME
    if content is None:
        note.unlink()
    else:
        note.write_bytes(content)
    (path,) = segments(numbers)
    path.write_bytes(path.read_bytes()[:-1])
    assert rows(log.topic("numbers")) == list(range(10))
    topic = log.topic("numbers")
    append(topic, 10)
    topic.flush()
    assert rows(log.topic("numbers")) == list(range(20))
    assert read_flushed(partition(numbers)) == Flushed(0, path.stat().st_size, 20)


def test_note_of_a_newer_version_is_refused(log, numbers, monkeypatch):
    monkeypatch.setattr("headwater.eventlog.flushed.VERSION", 2)
    append(numbers, 0)
    numbers.flush()
    monkeypatch.undo()
    with pytest.raises(LogFormatUnknown, match="must have log format 1; it has 2"):
        log.topic("numbers").end_offsets()


def test_note_never_goes_back(tmp_path):
    for flushed in (Flushed(10, 5, 12), Flushed(10, 4, 11), Flushed(0, 900, 10)):
        assert advance_flushed(tmp_path, flushed)
        assert read_flushed(tmp_path) == Flushed(10, 5, 12)


def test_flush_that_comes_during_another_does_not_rely_on_it(numbers, monkeypatch):
    append(numbers, 0)
    real, calls = os.fsync, []

    def fsync(fd):
        calls.append(fd)
        if len(calls) == 1:
            numbers.flush()  # as another thread would
        real(fd)

    monkeypatch.setattr(os, "fsync", fsync)
    numbers.flush()
    assert len(calls) == 2
    numbers.flush()
    assert len(calls) == 2


@settings(examples(150), suppress_health_check=[HealthCheck.too_slow])
@given(
    appends=st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=8),
    segment_bytes=st.integers(300, 3000),
    seed=st.integers(0, 1 << 30),
)
def test_flushed_rows_are_all_read_or_an_error_says_so(appends, segment_bytes, seed):
    """Whatever one file of the log suffers: a cut, flipped bits, zeros, the loss of it, bytes behind its end."""
    dice = random.Random(seed)
    was = conform.FRAME_BYTES
    conform.FRAME_BYTES = dice.choice([80, 1 << 20])
    try:
        with tempfile.TemporaryDirectory() as folder:
            topic = EventLog(folder).create_topic("numbers", NUMBERS, segment_bytes=segment_bytes)
            written = flushed = 0
            for count, flush in appends:
                append(topic, written, count)
                written += count
                if flush:
                    topic.flush()
                    flushed = written
            harm(dice.choice([*segments(topic), *partition(topic).glob("*.index")]), dice)
            check(EventLog(folder), flushed, written)
    finally:
        conform.FRAME_BYTES = was


def harm(path: Path, dice: random.Random) -> None:
    data = bytearray(path.read_bytes())
    at = dice.randrange(len(data) + 1)
    match dice.choice(["cut", "flip", "zero", "lose", "grow"]):
        case "cut":
            del data[at:]
        case "flip":
            for _ in range(dice.choice([1, 1, 1, 8])):
                if data:
                    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
        case "zero":
            data[at:] = bytes(len(data) - at)
        case "lose":
            path.unlink()
            return
        case "grow":
            data += dice.randbytes(dice.randrange(1, 200))
    path.write_bytes(data)


def check(log: EventLog, flushed: int, written: int) -> None:
    """A reader, then a writer, then a reader again: rows in their order, and never fewer than were flushed."""
    try:
        found = read(log)
        assert found == list(range(len(found)))
        assert flushed <= len(found) <= written
        append(log.topic("numbers"), len(found), 3)
        assert read(log) == list(range(len(found) + 3))
    except (LogCorrupt, OffsetGone):  # the oldest segment may be lost as if by retention
        return


def read(log: EventLog) -> list[int]:
    return [n for batch in log.topic("numbers").read(0, 0) for n in batch.column("n").to_pylist()]
