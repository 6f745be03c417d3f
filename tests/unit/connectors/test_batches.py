"""Batches that were put down: there when they are complete, as they were, and as long as they are needed."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.batches import Batches
from headwater.connectors.dataframes import MAX_BATCHES_AHEAD, DataFrameSource, schema_of

SCHEMA = hw.Schema.of("n bigint").arrow
FIELD = {"name": "n", "type": "long", "nullable": True}
FRAME = SimpleNamespace(
    isStreaming=True, schema=SimpleNamespace(jsonValue=lambda: {"type": "struct", "fields": [FIELD]})
)
"""What a source asks of a DataFrame that it does not read."""


def put(folder: Path, number: int, *parts: list[int]) -> None:
    batches = Batches(folder)
    names = [
        batches.put_part(number, at, [pa.RecordBatch.from_pydict({"n": rows}, schema=SCHEMA)], SCHEMA)
        for at, rows in enumerate(parts)
    ]
    batches.complete(number, names)


def source(folder: Path, splits: int = 1) -> DataFrameSource:
    made = DataFrameSource(FRAME, splits)
    made.remember_in(folder)
    return made


def rows(source: DataFrameSource, split: str, start: int, end: int) -> list[int]:
    return [n for batch in source.read(split, start, end) for n in batch["n"].to_pylist()]


def kept(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in (folder / "batches").glob("*.json"))


def test_a_batch_is_there_when_it_is_complete(tmp_path: Path) -> None:
    batches = Batches(tmp_path)
    assert batches.count() == 0
    name = batches.put_part(0, 0, [pa.RecordBatch.from_pydict({"n": [1]}, schema=SCHEMA)], SCHEMA)
    assert (batches.count(), batches.has(0)) == (0, False)
    batches.complete(0, [name])
    put(tmp_path, 1)
    assert (batches.count(), Batches(tmp_path).count()) == (2, 2)


def test_splits_share_the_parts_of_each_batch(tmp_path: Path) -> None:
    put(tmp_path, 0, [0, 1], [2], [3])
    put(tmp_path, 1, [4])
    put(tmp_path, 2)
    two = source(tmp_path, splits=2)
    assert two.latest({}, 0) == {"0": 3, "1": 3}
    assert rows(two, "0", 0, 3) == [0, 1, 3, 4]
    assert rows(two, "1", 0, 3) == [2]
    assert rows(pickle.loads(pickle.dumps(two)), "0", 1, 3) == [4]


def test_positions_of_other_splits_and_rows_of_another_schema_are_refused(tmp_path: Path) -> None:
    put(tmp_path, 0, [0])
    source(tmp_path, splits=2)
    with pytest.raises(hw.SourceError, match=r"shared by 2 splits, the source has 3; give from_dataframe splits=2"):
        source(tmp_path, splits=3)
    other = source(tmp_path, splits=2)
    other.schema = hw.Schema.of("n int")
    with pytest.raises(hw.SourceError, match="batch 0 has the schema 'n bigint', the job declares 'n int'"):
        rows(other, "0", 0, 1)


def test_rows_get_the_types_of_the_job(tmp_path: Path) -> None:
    schema = hw.Schema.of("at timestamp, k string, s struct<at:timestamp>").arrow
    tokyo = pa.timestamp("us", "Asia/Tokyo")
    given = pa.table(
        [pa.array([5], tokyo), pa.array(["a"], pa.large_string()), pa.array([(6,)], pa.struct([("at", tokyo)]))],
        names=schema.names,
    )
    batches = Batches(tmp_path)
    batches.complete(0, [batches.put_part(0, 0, given.to_batches(), schema)])
    (batch,) = batches.read(0, slice(None))
    assert batch.schema.equals(schema)
    assert batch["at"].cast(pa.int64()).to_pylist() == [5]


def test_epochs_of_an_earlier_run_are_told_before_this_one_keeps_any(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, number, [number])
    one = source(tmp_path)
    one.published({"0": 3})
    assert kept(tmp_path) == [0, 1, 2]
    one.retain(checkpoints=1)
    one.published({"0": 3})
    assert kept(tmp_path) == [0, 1, 2]


def test_batches_are_removed_when_no_retained_checkpoint_reads_them(tmp_path: Path) -> None:
    one = source(tmp_path)
    one.retain(checkpoints=2)
    for number in range(6):
        put(tmp_path, number, [number])
        one.published({"0": number + 1})
    assert kept(tmp_path) == [3, 4, 5]  # the last four epochs read up to 3, 4, 5 and 6
    assert one.latest({}, 0) == {"0": 6}
    for _ in range(6):
        one.published({"0": 6})
    assert kept(tmp_path) == [5]  # it tells how many there were
    assert source(tmp_path).latest({}, 0) == {"0": 6}
    with pytest.raises(hw.SourceError, match=r"batch 2 in .* cannot be read: .*; batches are kept as long as retained"):
        rows(one, "0", 2, 3)


def test_a_frame_waits_when_it_is_far_ahead(tmp_path: Path) -> None:
    put(tmp_path, 0, [0])
    one = source(tmp_path)
    one.retain(checkpoints=2)
    assert one.has_room(MAX_BATCHES_AHEAD)
    assert not one.has_room(MAX_BATCHES_AHEAD + 1)
    one.published({"0": 2})
    assert one.has_room(MAX_BATCHES_AHEAD + 1)
    one.published({})
    assert one.has_room(MAX_BATCHES_AHEAD + 1)


def test_a_savepoint_needs_what_was_not_read_and_the_checkpoint_of_the_query(tmp_path: Path) -> None:
    for number in range(3):
        put(tmp_path, number, [number])
    for name in ("commits/1", "offsets/2", "sources/0/0", "metadata"):
        (tmp_path / "query" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "query" / name).touch()

    def needed(position: int) -> list[str]:
        found = source(tmp_path).needed(tmp_path, {"0": position})
        return [path.relative_to(tmp_path).as_posix() for path in found if path.suffix != ".arrow"]

    query = ["query/offsets/2", "query/metadata", "query/sources/0/0"]
    lists = [f"batches/{number:010d}.json" for number in range(3)]
    assert needed(1) == ["splits", "query/commits/1", *lists[1:], *query]
    assert needed(3) == ["splits", "query/commits/1", lists[2], *query]
    assert len([path for path in source(tmp_path).needed(tmp_path, {"0": 2}) if path.suffix == ".arrow"]) == 1


def test_the_frame_stays_in_the_driver(tmp_path: Path) -> None:
    one = source(tmp_path)
    assert copy.copy(one).frame is FRAME
    assert pickle.loads(pickle.dumps(one)).frame is None


def schema(**types: Any) -> dict[str, Any]:
    return {"fields": [{"name": name, "type": given, "nullable": True} for name, given in types.items()]}


def test_types_of_frames_become_those_of_rows() -> None:
    array = {"type": "array", "elementType": "integer", "containsNull": True}
    found = schema_of(
        schema(
            k="string",
            d="decimal(10,2)",
            local="timestamp_ntz",
            took="interval day to second",
            tags=array,
            by={"type": "map", "keyType": "string", "valueType": array, "valueContainsNull": True},
            s={"type": "struct", "fields": [{"name": "a b", "type": "short", "nullable": False}]},
        )
    )
    assert found.ddl() == (
        "k string, d decimal(10,2), local timestamp_ntz, took interval day to second, tags array<int>, "
        "by map<string,array<int>>, s struct<`a b`:smallint not null>"
    )


@pytest.mark.parametrize("given", ["variant", "interval year to month", {"type": "udt", "class": "x"}])
def test_types_that_rows_cannot_have_are_refused_with_their_column(given: Any) -> None:
    with pytest.raises(hw.SchemaError, match="column 'odd' of the DataFrame: "):
        schema_of(schema(k="string", odd=given))


def test_frames_out_need_spark() -> None:
    env = hw.Environment("local", engine="local")
    env.from_rows([(1,)], "n int").to_dataframe_sink(lambda frame, epoch: None)
    with pytest.raises(hw.GraphError, match="gives DataFrames, which are Spark's"):
        env.run()
