from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from headwater.errors import RowError
from headwater.eventlog import conform
from headwater.eventlog import topic as topic_module
from headwater.eventlog.errors import LogArgument, LogSchemaMismatch, OffsetAhead

NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)
RICH = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("flag", pa.bool_()),
        ("price", pa.decimal128(12, 2)),
        ("big", pa.decimal256(50, 4)),
        ("at", pa.timestamp("us", tz="Europe/Berlin")),
        ("day", pa.date32()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("code", pa.binary(4)),
        ("tags", pa.list_(pa.string())),
        ("pair", pa.list_(pa.float32(), 2)),
        ("place", pa.struct([("city", pa.string()), ("at", pa.struct([("x", pa.float64())]))])),
        ("counts", pa.map_(pa.string(), pa.int32())),
        ("view", pa.string_view()),
        ("nothing", pa.null()),
    ]
)
RICH_ROWS = [
    {
        "id": 1,
        "flag": True,
        "price": Decimal("12.50"),
        "big": Decimal("123456789012345678901234567890.1234"),
        "at": NOON,
        "day": NOON.date(),
        "text": "grüße",
        "raw": b"\x00HWEL\xff",
        "code": b"abcd",
        "tags": ["a", None, ""],
        "pair": [1.5, -0.0],
        "place": {"city": "Ulm", "at": {"x": 1.0}},
        "counts": [("a", 1), ("b", None)],
        "view": "a text that does not fit into a view",
        "nothing": None,
    },
    {"id": 2, **dict.fromkeys(RICH.names[1:])},
    {
        "id": 3,
        **dict.fromkeys(RICH.names[1:]),
        "tags": [],
        "counts": [],
        "place": {"city": None, "at": None},
        "text": "",
    },
]


def test_rich_rows_come_back_equal(log):
    topic = log.create_topic("rich", RICH)
    table = pa.Table.from_pylist(RICH_ROWS, schema=RICH)
    assert topic.append(table) == (0, 3)
    assert topic.append(table.slice(1, 1)) == (3, 4)
    for reader in (topic, log.topic("rich")):
        batches = list(reader.read(0, 0))
        assert all(batch.schema.equals(RICH) for batch in batches)
        read = pa.Table.from_batches(batches)
        read.validate(full=True)
        assert read.equals(pa.concat_tables([table, table.slice(1, 1)]))


@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (3, 10), (9, 11), (0, 30), (10, 20), (29, 30), (30, 30)])
def test_read_gives_exactly_the_range(numbers, rows, start, end):
    for first in range(0, 30, 10):
        assert numbers.append(pa.table({"n": range(first, first + 10)})) == (first, first + 10)
    assert rows(numbers, start, end) == list(range(start, end))


def test_read_without_end_stops_at_what_was_visible_at_the_call(numbers):
    numbers.append(pa.table({"n": [0, 1]}))
    reading = numbers.read(0, 0)
    numbers.append(pa.table({"n": [2]}))
    assert [batch.num_rows for batch in reading] == [2]


def test_max_bytes_stops_after_the_batch_that_reaches_it(numbers):
    for first in range(0, 50, 10):
        numbers.append(pa.table({"n": range(first, first + 10)}))
    assert sum(b.num_rows for b in numbers.read(0, 0, max_bytes=0)) == 10
    assert sum(b.num_rows for b in numbers.read(0, 5, max_bytes=1)) == 5
    one = next(iter(numbers.read(0, 0))).serialize().size
    assert sum(b.num_rows for b in numbers.read(0, 0, max_bytes=one + 1)) == 20
    assert sum(b.num_rows for b in numbers.read(0, 0, max_bytes=10**9)) == 50


def test_batches_outlive_the_topic(log, numbers):
    numbers.append(pa.table({"n": range(1000)}))
    batch = next(log.topic("numbers").read(0, 0))
    (segment,) = (numbers.path / "partition-0").glob("*.segment")
    segment.unlink()
    assert batch.column("n").to_pylist() == list(range(1000))


def test_reading_ahead_of_the_end_is_an_error(numbers):
    numbers.append(pa.table({"n": [1, 2]}))
    for start, end in ((3, None), (0, 3), (3, 5)):
        with pytest.raises(OffsetAhead, match="has rows up to offset 2") as caught:
            numbers.read(0, start, end)
        assert (caught.value.topic, caught.value.partition, caught.value.end) == ("numbers", 0, 2)


@pytest.mark.parametrize(("start", "end"), [(-1, None), (2, 1), ("0", None), (0, 1.0), (True, None)])
def test_offsets_are_checked(numbers, start, end):
    numbers.append(pa.table({"n": [1, 2]}))
    with pytest.raises(LogArgument, match="must be a whole number"):
        numbers.read(0, start, end)


def test_numpy_numbers_are_offsets(numbers, rows):
    numbers.append(pa.table({"n": [1, 2]}), np.int64(0))
    assert rows(numbers, np.int64(1), np.int32(2)) == [2]


def test_empty_append_changes_nothing(numbers):
    numbers.append(pa.table({"n": [1]}))
    assert numbers.append(pa.table({"n": pa.array([], pa.int64())})) == (1, 1)
    assert numbers.end_offsets() == {0: 1}


def test_partitions_are_independent(log, rows):
    topic = log.create_topic("two", pa.schema([("n", pa.int64())]), 2)
    topic.append(pa.table({"n": [1, 2]}), 1)
    topic.append(pa.table({"n": [3]}), 0)
    assert topic.end_offsets() == {0: 1, 1: 2}
    assert rows(topic, partition=1) == [1, 2]


def test_large_append_takes_several_frames_and_reads_back(numbers, rows, monkeypatch):
    monkeypatch.setattr(conform, "FRAME_BYTES", 800)
    assert numbers.append(pa.table({"n": range(1000)})) == (0, 1000)
    assert numbers.append(pa.record_batch({"n": range(1000, 1250)})) == (1000, 1250)
    assert [batch.num_rows for batch in numbers.read(0, 0)] == [100] * 12 + [50]
    assert rows(numbers, 333, 1101) == list(range(333, 1101))


def test_append_beyond_the_eager_size_is_encoded_under_the_lock(numbers, rows, monkeypatch):
    monkeypatch.setattr(conform, "FRAME_BYTES", 800)
    monkeypatch.setattr(topic_module, "EAGER_BYTES", 100)
    assert numbers.append(pa.table({"n": range(1000)})) == (0, 1000)
    assert rows(numbers) == list(range(1000))


def test_tiny_chunks_are_joined_into_one_frame(numbers):
    table = pa.concat_tables([pa.table({"n": [i]}) for i in range(50)])
    numbers.append(table)
    assert [batch.num_rows for batch in numbers.read(0, 0)] == [50]


def test_columns_are_matched_by_name(log):
    topic = log.create_topic("t", pa.schema([("a", pa.int64()), ("b", pa.string())]))
    topic.append(pa.table({"b": ["x"], "a": [1]}))
    topic.append(pa.record_batch({"b": ["y"], "a": [2]}))
    assert pa.Table.from_batches(topic.read(0, 0)).to_pylist() == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]


@pytest.mark.parametrize(
    "given",
    [
        pa.array(["x", None]).dictionary_encode(),
        pa.array(["x", None], pa.large_string()),
        pa.array(["x", None], pa.string_view()),
        pa.array(["x", None], pa.large_string()).dictionary_encode(),
    ],
)
def test_other_encodings_of_the_same_text_are_taken(log, given):
    topic = log.create_topic("t", pa.schema([("s", pa.string())]))
    topic.append(pa.table({"s": given}))
    topic.append(pa.table({"s": pa.nulls(1)}))
    assert pa.Table.from_batches(topic.read(0, 0))["s"].to_pylist() == ["x", None, None]


@pytest.mark.parametrize(
    ("given", "field", "text"),
    [
        ({"a": pa.array([1], pa.int32()), "b": ["x"]}, "a", "field 'a' must have type int64; got int32; cast"),
        ({"a": pa.array([1.0]), "b": ["x"]}, "a", "field 'a' must have type int64; got double"),
        ({"a": [1], "b": [b"x"]}, "b", "field 'b' must have type string; got binary"),
        ({"a": [1]}, "b", "needs the field 'b' of type string; the rows have a; add"),
        ({"a": [1], "b": ["x"], "c": [1]}, "c", r"has no field 'c' \(int64\); it has a, b; drop"),
        ({"a": [1], "b": pa.array([None], pa.string())}, "b", "field 'b' must not be null; 1 rows"),
        ({"a": [1], "b": pa.nulls(1)}, "b", "field 'b' must not be null"),
    ],
)
def test_rows_of_another_schema_are_refused(log, given, field, text):
    topic = log.create_topic("t", pa.schema([("a", pa.int64()), pa.field("b", pa.string(), nullable=False)]))
    with pytest.raises(LogSchemaMismatch, match=f"topic 't' {text}") as caught:
        topic.append(pa.table(given))
    assert (caught.value.topic, caught.value.field) == ("t", field)
    assert topic.end_offsets() == {0: 0}


def test_columns_of_one_name_are_refused(numbers):
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    with pytest.raises(LogSchemaMismatch, match="the rows have 'n' several times"):
        numbers.append(twice)


def test_rows_as_dicts_and_tuples_are_taken(numbers):
    numbers.append([{"n": 1}, (2,)])
    assert [batch["n"].to_pylist() for batch in numbers.read(0, 0)] == [[1, 2]]


def test_row_that_does_not_fit_is_named(numbers):
    with pytest.raises(RowError, match=r"append to topic .*, field 'n': value 'x' does not fit int64"):
        numbers.append([{"n": "x"}])
    assert numbers.end_offsets() == {0: 0}


def test_other_rows_are_refused(numbers):
    with pytest.raises(LogArgument, match=r"must be a pyarrow.Table, a RecordBatch or a list of rows; got 'dict'"):
        numbers.append({"n": 1})


def test_schema_can_be_ddl(log):
    topic = log.create_topic("ddl", "user string, ts timestamp not null")
    assert topic.schema == pa.schema([("user", pa.string()), pa.field("ts", pa.timestamp("us", "UTC"), nullable=False)])


def test_reader_that_listed_an_incomplete_folder_finds_the_segment_between(log, rows):
    topic = log.create_topic("rolling", pa.schema([("n", pa.int64())]), segment_bytes=600)
    for first in range(0, 300, 10):
        topic.append(pa.table({"n": range(first, first + 10)}))
    follower = log.topic("rolling")
    follower.end_offsets()
    del follower._readers[0]._bases[2]
    assert rows(follower) == list(range(300))


def test_fresh_and_long_lived_readers_agree_over_rolls(log, rows):
    topic = log.create_topic("rolling", pa.schema([("n", pa.int64())]), segment_bytes=600)
    follower = log.topic("rolling")
    for first in range(0, 300, 10):
        topic.append(pa.table({"n": range(first, first + 10)}))
        assert follower.end_offsets() == log.topic("rolling").end_offsets() == {0: first + 10}
    assert len(list((topic.path / "partition-0").glob("*.segment"))) > 5
    assert rows(follower) == rows(log.topic("rolling")) == list(range(300))
    assert rows(log.topic("rolling"), 95, 206) == list(range(95, 206))
