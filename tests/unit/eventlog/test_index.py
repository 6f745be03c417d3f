from __future__ import annotations

import os

import pyarrow as pa
import pytest

from headwater.eventlog import index
from headwater.eventlog.files import OpenFile

APPENDS = 400


@pytest.fixture
def topic(log, monkeypatch):
    monkeypatch.setattr(index, "STRIDE_BYTES", 2048)
    topic = log.create_topic("t", pa.schema([("n", pa.int64())]), segment_bytes=40_000)
    for n in range(APPENDS):
        topic.append(pa.table({"n": [n, n]}))
    return topic


def indexes(topic):
    return sorted((topic.path / "partition-0").glob("*.index"))


def walked(monkeypatch, act) -> int:
    """How many pieces of files `act` reads."""
    calls = []
    real = OpenFile.read_at
    with monkeypatch.context() as patch:
        patch.setattr(OpenFile, "read_at", lambda self, at, count: calls.append(at) or real(self, at, count))
        act()
    return len(calls)


def test_fresh_reader_starts_near_the_end(log, topic, monkeypatch):
    assert walked(monkeypatch, lambda: log.topic("t").end_offsets()) < 20
    for path in indexes(topic):
        path.unlink()
    assert walked(monkeypatch, lambda: log.topic("t").end_offsets()) > 50


def test_long_lived_reader_pays_for_what_is_new(topic, monkeypatch):
    topic.end_offsets()
    assert walked(monkeypatch, topic.end_offsets) == 0
    topic.append(pa.table({"n": [1]}))
    assert walked(monkeypatch, topic.end_offsets) == 2  # one header, one body


DAMAGES = {
    "lost": lambda data: None,
    "empty": lambda data: b"",
    "torn": lambda data: data[:-5],
    "shifted": lambda data: data[3:],
    "junk": lambda data: os.urandom(len(data)),
    "of another file": lambda data: data[24 * 3 :] + data[: 24 * 3],
    "reversed": lambda data: b"".join(data[i : i + 24] for i in range(len(data) - 24, -1, -24)),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_index_loss_is_harmless(log, topic, rows, damage):
    before = {path: path.read_bytes() for path in indexes(topic)}
    assert len(before) > 1
    for path, data in before.items():
        path.unlink() if (bad := damage(data)) is None else path.write_bytes(bad)
    expected = [n for n in range(APPENDS) for _ in range(2)]
    assert log.topic("t").end_offsets() == {0: 2 * APPENDS}
    for start in range(0, 2 * APPENDS, 37):
        assert rows(log.topic("t"), start) == expected[start:]
    assert log.topic("t").append(pa.table({"n": [5]})) == (2 * APPENDS, 2 * APPENDS + 1)
    topic.rebuild_indexes()
    for path, data in before.items():
        assert path.read_bytes().startswith(data)
    assert rows(log.topic("t")) == [*expected, 5]


def test_writers_reopening_add_no_entries_twice(log, topic):
    before = {path: path.read_bytes() for path in indexes(topic)}
    for _ in range(3):
        log.topic("t").append(pa.table({"n": pa.array([], pa.int64())}))
        log.topic("t").rebuild_indexes()
    assert {path: path.read_bytes() for path in indexes(topic)} == before


def test_full_disk_for_the_index_does_not_fail_the_append(log, topic, rows, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index.os, "pwrite", full)
    for n in range(100):
        topic.append(pa.table({"n": [n]}))
    assert rows(log.topic("t"), 2 * APPENDS) == list(range(100))
