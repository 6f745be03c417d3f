"""Torn ends are cut, damage is reported, a full disk undoes the append."""

from __future__ import annotations

import errno
import os
import resource
import shutil

import pyarrow as pa
import pytest

from headwater.eventlog import conform
from headwater.eventlog.errors import LogCorrupt, LogWriteFailed
from headwater.eventlog.frame import HEADER_BYTES, FrameBody, pack_header, parse_header


def append(topic, first: int, count: int = 10) -> None:
    topic.append(pa.table({"n": range(first, first + count)}))


def segments(topic):
    return sorted((topic.path / "partition-0").glob("*.segment"))


def frame_starts(data: bytes) -> list[int]:
    starts = [0]
    while starts[-1] < len(data):
        starts.append(starts[-1] + parse_header(data, starts[-1]).frame_bytes)
    return starts


@pytest.mark.parametrize("frame_bytes", [1 << 20, 80], ids=["one frame", "three frames"])
def test_tail_torn_at_every_byte_is_never_seen_and_is_cut(log, numbers, rows, monkeypatch, frame_bytes):
    append(numbers, 0)
    whole_before = segments(numbers)[0].stat().st_size
    monkeypatch.setattr(conform, "FRAME_BYTES", frame_bytes)
    append(numbers, 10, 25)
    (path,) = segments(numbers)
    data = path.read_bytes()
    assert len(frame_starts(data)) == (3 if frame_bytes > 80 else 5)
    for length in range(whole_before, len(data)):
        path.write_bytes(data[:length])
        reader, writer = log.topic("numbers"), log.topic("numbers")
        assert rows(reader) == list(range(10))
        assert path.stat().st_size == length, "readers change nothing"
        assert writer.append(pa.table({"n": [99]})) == (10, 11)
        assert rows(reader) == rows(log.topic("numbers")) == [*range(10), 99]


def test_long_lived_writer_cuts_what_another_left_torn(log, numbers, rows):
    append(numbers, 0)
    follower = log.topic("numbers")
    assert follower.end_offsets() == {0: 10}
    (path,) = segments(numbers)
    data = path.read_bytes()
    with path.open("ab") as file:
        file.write(data[: len(data) - 3])
    with pytest.raises(LogCorrupt, match="holds offset 0 where 10 must follow"):
        follower.end_offsets()
    path.write_bytes(data)
    body = FrameBody(pa.record_batch({"n": [1, 2]}).serialize(), 0, 2)
    with path.open("ab") as file:
        file.write(pack_header(body, 10, 3) + body.message.to_pybytes()[:-1])
    assert follower.end_offsets() == {0: 10}
    append(numbers, 10)
    assert rows(follower) == list(range(20))


@pytest.mark.parametrize("junk", [b"\0" * 5, b"\0" * 5000, b"HWEL" * 100, os.urandom(300)])
def test_bytes_after_the_end_that_are_no_frames_are_a_torn_tail(log, numbers, rows, junk):
    append(numbers, 0)
    with segments(numbers)[0].open("ab") as file:
        file.write(junk)
    assert rows(log.topic("numbers")) == list(range(10))
    append(log.topic("numbers"), 10)
    assert rows(log.topic("numbers")) == list(range(20))


def test_last_append_with_a_bad_body_is_a_torn_tail(log, numbers, rows):
    """After power loss a file may have its length and not its bytes."""
    append(numbers, 0)
    append(numbers, 10)
    (path,) = segments(numbers)
    data = bytearray(path.read_bytes())
    data[-40:] = bytes(40)
    path.write_bytes(data)
    assert rows(log.topic("numbers")) == list(range(10))
    append(log.topic("numbers"), 50)
    assert rows(log.topic("numbers")) == [*range(10), *range(50, 60)]


def test_every_flipped_byte_before_the_last_append_is_reported(log, numbers, rows):
    for first in (0, 10, 20):
        append(numbers, first)
    (path,) = segments(numbers)
    data = path.read_bytes()
    _, second, third, _ = frame_starts(data)
    spare = set(range(second + 36, second + 40))  # the header's unused zero
    for at in [*range(second, second + HEADER_BYTES + 30), *range(third - 20, third)]:
        damaged = bytearray(data)
        damaged[at] ^= 0x41
        path.write_bytes(damaged)
        if at in spare:
            continue
        with pytest.raises(LogCorrupt) as caught:
            rows(log.topic("numbers"))
        error = caught.value
        assert (error.path, error.position, error.offset) == (str(path), second, 10)
        assert (error.topic, error.partition) == ("numbers", 0)
        assert f"at byte {second}, offset 10" in str(error)
        assert "topic.drop_from(0, 10)" in str(error)
        assert path.read_bytes() == damaged, "nothing is repaired behind one's back"


def test_writer_refuses_to_write_after_a_damaged_header(log, numbers):
    for first in (0, 10, 20):
        append(numbers, first)
    (path,) = segments(numbers)
    data = bytearray(path.read_bytes())
    at = frame_starts(data)[1]
    data[at + 8] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogCorrupt, match=f"at byte {at}"):
        append(log.topic("numbers"), 30)
    assert path.read_bytes() == data


def test_rows_before_and_after_a_bad_body_can_still_be_read(log, numbers, rows):
    for first in (0, 10, 20):
        append(numbers, first)
    (path,) = segments(numbers)
    data = bytearray(path.read_bytes())
    data[frame_starts(data)[2] - 1] ^= 1
    path.write_bytes(data)
    reader = log.topic("numbers")
    assert rows(reader, 0, 10) == list(range(10))
    assert rows(reader, 20) == list(range(20, 30))
    with pytest.raises(LogCorrupt):
        rows(reader, 15)


def test_drop_from_is_a_way_out(log, rows):
    topic = log.create_topic("rolling", pa.schema([("n", pa.int64())]), segment_bytes=800)
    for first in range(0, 100, 10):
        append(topic, first)
    follower = log.topic("rolling")
    held = next(follower.read(0, 0))
    path = segments(topic)[1]
    data = bytearray(path.read_bytes())
    at = frame_starts(data)[1]
    data[at + 5] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogCorrupt) as caught:
        rows(follower)
    kept = caught.value.offset
    assert topic.drop_from(0, kept + 3) == kept
    assert follower.end_offsets() == log.topic("rolling").end_offsets() == {0: kept}
    append(topic, kept)
    append(log.topic("rolling"), kept + 10)
    assert rows(follower) == rows(topic) == list(range(kept + 20))
    assert held.column("n").to_pylist() == list(range(10))


def test_frame_of_a_newer_version_is_never_cut(log, numbers, monkeypatch):
    append(numbers, 0)
    monkeypatch.setattr("headwater.eventlog.frame.VERSION", 2)
    append(numbers, 10)
    monkeypatch.undo()
    for use in (lambda: log.topic("numbers").end_offsets(), lambda: append(log.topic("numbers"), 20)):
        with pytest.raises(LogCorrupt, match="has version 2, this Headwater reads 1"):
            use()


def test_missing_and_shortened_segments_are_reported(log, rows):
    topic = log.create_topic("rolling", pa.schema([("n", pa.int64())]), segment_bytes=800)
    for first in range(0, 100, 10):
        append(topic, first)
    paths = segments(topic)
    copy = paths[1].read_bytes()
    for content in (copy[:-5], copy[: frame_starts(copy)[1]], b"", None):
        if content is None:
            paths[1].unlink()
        else:
            paths[1].write_bytes(content)
        with pytest.raises(LogCorrupt):
            rows(log.topic("rolling"))
    paths[1].write_bytes(copy)
    assert rows(log.topic("rolling")) == list(range(100))


def test_follower_reports_a_segment_damaged_before_it_got_there(log):
    topic = log.create_topic("rolling", pa.schema([("n", pa.int64())]), segment_bytes=800)
    follower = log.topic("rolling")
    assert follower.end_offsets() == {0: 0}
    for first in range(0, 100, 10):
        append(topic, first)
    path = segments(topic)[0]
    data = bytearray(path.read_bytes())
    data[frame_starts(data)[-2] + 1] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogCorrupt, match="newer segments follow"):
        follower.end_offsets()


@pytest.mark.parametrize("at_byte", [1, 60], ids=["header", "body"])
def test_damaged_end_of_an_old_segment_is_never_cut(log, at_byte):
    topic = log.create_topic("rolling", pa.schema([("n", pa.int64())]), segment_bytes=800)
    sleeper = log.topic("rolling")
    append(sleeper, 0)
    for first in range(10, 100, 10):
        append(topic, first)
    path = segments(topic)[0]
    data = bytearray(path.read_bytes())
    data[frame_starts(data)[-2] + at_byte] ^= 1
    path.write_bytes(data)
    with pytest.raises(LogCorrupt, match="newer segments follow"):
        log.topic("rolling").rebuild_indexes()
    if at_byte == 1:
        with pytest.raises(LogCorrupt, match="newer segments follow"):
            append(sleeper, 100)
    else:  # bodies of old appends are not read by a writer; it goes on where the log ends
        append(sleeper, 100)
    assert path.read_bytes() == data
    append(log.topic("rolling"), 110)


def test_partition_without_segments_is_reported(log, numbers):
    shutil.rmtree(numbers.path / "partition-0")
    (numbers.path / "partition-0").mkdir()
    with pytest.raises(LogCorrupt, match="has no segment"):
        log.topic("numbers").end_offsets()
    with pytest.raises(LogCorrupt, match="has no segment"):
        append(log.topic("numbers"), 0)


@pytest.mark.parametrize("taken", [0, 1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 7, 200])
@pytest.mark.parametrize("failing", [0, 1, 2])
def test_full_disk_undoes_the_append_and_the_log_stays_usable(log, rows, monkeypatch, taken, failing):
    numbers = log.create_topic("numbers", pa.schema([("n", pa.int64())]))
    append(numbers, 0)
    follower = log.topic("numbers")
    size = segments(numbers)[0].stat().st_size
    calls = []

    def runs_full(fd, buffers, position):
        data = b"".join(bytes(buffer) for buffer in buffers)
        calls.append(position)
        if len(calls) - 1 < failing:
            return os.pwrite(fd, data, position)
        os.pwrite(fd, data[:taken], position)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(conform, "FRAME_BYTES", 80)
    monkeypatch.setattr(os, "pwritev", runs_full)
    with pytest.raises(LogWriteFailed, match=r"none of its rows were kept.*No space left.*free space") as caught:
        append(numbers, 10, 25)
    assert caught.value.errno == errno.ENOSPC
    assert segments(numbers)[0].stat().st_size == size
    assert rows(follower) == list(range(10))
    monkeypatch.undo()
    append(numbers, 10)
    assert rows(follower) == list(range(20))


def test_short_writes_are_continued(numbers, rows, monkeypatch):
    real = os.pwrite
    for taken in (1, HEADER_BYTES - 1, HEADER_BYTES, HEADER_BYTES + 1):

        def short(fd, buffers, position, taken=taken):
            return real(fd, b"".join(bytes(buffer) for buffer in buffers)[:taken], position)

        monkeypatch.setattr(os, "pwritev", short)
        monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real(fd, bytes(data)[:33], position))
        append(numbers, numbers.end_offsets()[0])
    assert rows(numbers) == list(range(40))


def test_interrupt_after_the_last_byte_keeps_the_rows_readers_saw(numbers, rows, monkeypatch):
    append(numbers, 0)
    real = os.pwritev

    def interrupted(fd, buffers, position):
        real(fd, buffers, position)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "pwritev", interrupted)
    with pytest.raises(KeyboardInterrupt):
        append(numbers, 10)
    monkeypatch.undo()
    append(numbers, 20)
    assert rows(numbers) == list(range(30))


def test_failed_flush_is_told_and_repeated(numbers, monkeypatch):
    append(numbers, 0)
    real, synced = os.fsync, []

    def fails(fd):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(LogWriteFailed, match="could not be flushed"):
        numbers.flush()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(real(fd)))
    numbers.flush()
    numbers.flush()
    assert len(synced) == 1


def test_append_the_kernel_takes_in_part_is_undone(log, numbers, rows):
    """A limit on file sizes makes the kernel write a part and refuse the rest, as a full disk does."""
    append(numbers, 0)
    (path,) = segments(numbers)
    size = path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, before[1]))
    try:
        with pytest.raises(LogWriteFailed) as caught:
            append(numbers, 10, 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.errno == errno.EFBIG
    assert path.stat().st_size == size
    append(numbers, 10, 5000)
    assert rows(log.topic("numbers")) == list(range(5010))
