from __future__ import annotations

import datetime as dt
import errno
import os
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.eventlog.errors import LogArgument, LogWriteFailed
from headwater.eventlog.spread import partition_of


def places(values: pa.Array, partitions: int = 16) -> list[int]:
    return partition_of(pa.chunked_array([values]), partitions, "k").tolist()


def test_rows_of_a_key_stay_together_and_in_order(log):
    topic = log.create_topic("t", pa.schema([("user", pa.string()), ("n", pa.int64())]), 4)
    table = pa.table({"user": [f"u{i % 37}" for i in range(1000)], "n": range(1000)})
    done = topic.append_keyed(table, by="user")
    assert done == {p: (0, end) for p, end in topic.end_offsets().items()}
    home: dict[str, int] = {}
    seen = []
    for p in range(4):
        part = pa.Table.from_batches(topic.read(p, 0)).to_pylist()
        assert [row["n"] for row in part] == sorted(row["n"] for row in part)
        assert all(home.setdefault(row["user"], p) == p for row in part)
        seen += [row["n"] for row in part]
    assert sorted(seen) == list(range(1000))
    assert set(home.values()) == {0, 1, 2, 3}


def test_hash_never_changes():
    assert places(pa.array([0, 1, 2, -1, 2**62, None])) == [15, 1, 14, 0, 11, 0]
    assert places(pa.array(["", "a", "user-1", None])) == [15, 14, 11, 0]


def test_numbers_go_by_value_whatever_their_width():
    for kind in (pa.int8(), pa.int16(), pa.uint8(), pa.uint64(), pa.date32(), pa.time32("s")):
        assert places(pa.array([1, 2, 77], pa.int32()).cast(kind)) == places(pa.array([1, 2, 77]))
    assert places(pa.array(["a"], pa.large_string())) == places(pa.array([b"a"])) == places(pa.array(["a"]))
    assert len(set(places(pa.array([0.0, -0.0])))) == 1


@pytest.mark.parametrize(
    "values",
    [
        pa.array([True, False, None]),
        pa.array([1.5, float("nan"), None]),
        pa.array([dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]),
        pa.array([Decimal("1.10"), None]),
        pa.array([dt.time(1, 2), None]),
        pa.array([None, None], pa.string()),
        pa.array([b"abcd", None], pa.binary(4)),
        pa.array([None], pa.null()),
        pa.array([1, None], pa.timestamp("ns", "UTC")),
        pa.array([1, None], pa.duration("ms")),
        pa.array([1, None], pa.date64()),
        pa.array([], pa.int64()),
    ],
)
def test_keys_of_every_flat_type_are_taken(values):
    assert all(0 <= place < 16 for place in places(values))
    assert all(place == 0 for place, value in zip(places(values), values.to_pylist(), strict=True) if value is None)


def test_neighbouring_numbers_spread_evenly():
    counts = np.bincount(places(pa.array(range(16_000))))
    assert counts.min() > 800


def test_key_must_be_a_flat_field_of_the_topic(log):
    topic = log.create_topic("t", pa.schema([("a", pa.list_(pa.int64()))]), 2)
    with pytest.raises(LogArgument, match=r"by must be a field of topic 't' \(a\); got 'b'"):
        topic.append_keyed(pa.table({"a": [[1]]}), by="b")
    with pytest.raises(LogArgument, match="key column 'a' must be of a flat type"):
        topic.append_keyed(pa.table({"a": [[1]]}), by="a")


def test_failure_in_one_partition_tells_which_took_their_rows(log, monkeypatch):
    topic = log.create_topic("t", pa.schema([("n", pa.int64())]), 3)
    real, calls = os.pwritev, []

    def second_fails(fd, buffers, position):
        calls.append(position)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, buffers, position)

    monkeypatch.setattr(os, "pwritev", second_fails)
    with pytest.raises(LogWriteFailed) as caught:
        topic.append_keyed(pa.record_batch({"n": range(100)}), by="n")
    ends = topic.end_offsets()
    assert caught.value.partition == 1
    assert caught.value.appended == {0: (0, ends[0])}
    assert ends[0] > 0
    assert ends[1] == ends[2] == 0
    assert caught.value.__notes__ == ["partitions [0] took their rows; append only the rest again"]
