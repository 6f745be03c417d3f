"""Rows that Arrow can hold and outputs cannot be given: refused or put aside where they come in, or before the commit."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.connectors.console import ConsoleSink
from headwater.connectors.formats import CsvFormat, JsonFormat, numbered_rows
from headwater.data.sound import FIRST_MICROS, LAST_MICROS
from headwater.eventlog import EventLog
from headwater.eventlog.errors import LogSchemaMismatch

SCHEMA = "n bigint, at timestamp, day date, name string, names array<string>, by map<string,timestamp>"


def broken_text(*values: bytes) -> pa.Array:
    """A column of text that nobody has looked at."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


def times(*micros: int) -> pa.Array:
    return pa.array(micros, pa.timestamp("us", "UTC"))


def table(**columns: pa.Array) -> pa.Table:
    """Two rows; the columns that are not given are null."""
    schema = hw.Schema.of(SCHEMA).arrow
    return pa.table([columns.get(field.name, pa.nulls(2, field.type)) for field in schema], schema=schema)


POISON: dict[str, tuple[pa.Table, str]] = {
    "year 0": (
        table(at=times(0, FIRST_MICROS - 1)),
        "column 'at': a time is -62135596800000001 microseconds from 1970",
    ),
    "year 10000": (table(at=times(LAST_MICROS + 1, 0)), "column 'at': a time is 253402300800000000 microseconds"),
    "end of int64": (table(at=times(0, 2**63 - 1)), "column 'at': a time is 9223372036854775807 microseconds"),
    "far date": (
        table(day=pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32())),
        "column 'day': a date is 2147483647",
    ),
    "text": (table(name=broken_text(b"ok", b"\xff\xfe")), "column 'name': text is not UTF-8"),
    "half a letter": (table(name=broken_text(b"\xc3", b"\xa9")), "column 'name': text is not UTF-8"),
    "text in a list": (
        table(names=pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), broken_text(b"ok", b"\xff"))),
        "column 'names': text is not UTF-8",
    ),
    "time in a map": (
        table(by=pa.MapArray.from_arrays(pa.array([0, 1, 2], pa.int32()), ["a", "b"], times(0, 2**62))),
        "column 'by': a time is 4611686018427387904 microseconds",
    ),
}
each_poison = pytest.mark.parametrize("poison", POISON)
ENDS = table(at=times(FIRST_MICROS, LAST_MICROS), name=pa.array(["é", "\U0001f600"]), n=pa.array([1, 2]))


class Rows(hw.connectors.Source):
    """A source of somebody who does not look at rows."""

    bounded = True

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def describe(self) -> str:
        return "rows"

    def check(self, schema: hw.Schema) -> None:
        """They are of that schema."""

    def earliest(self) -> dict[str, int]:
        return {"0": 0}

    def latest(self, start: dict[str, int], elapsed_ms: int) -> dict[str, int]:
        return {"0": len(self._rows)}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        yield from self._rows.slice(start, end - start).to_batches()


def environment() -> hw.Environment:
    return hw.Environment("poison", engine="local")


# -- where rows come in ---------------------------------------------------------------------------------------------


@each_poison
def test_a_source_that_gives_such_rows_fails_with_its_name_and_the_column(poison: str) -> None:
    rows, told = POISON[poison]
    env = environment()
    env.source(Rows(rows), SCHEMA, name="feed").sink(hw.connectors.memory())
    with pytest.raises(hw.RowError, match=f"step 'feed', {told}.*drop or mend such rows before the job reads them"):
        env.run()


def test_the_first_and_the_last_moment_and_all_letters_pass() -> None:
    env = environment()
    found = env.source(Rows(ENDS), SCHEMA).collect()
    assert [(row.at.year, row.name) for row in found] == [(1, "é"), (9999, "\U0001f600")]


@each_poison
def test_tables_in_the_program_are_looked_at_when_they_are_given(poison: str) -> None:
    rows, told = POISON[poison]
    with pytest.raises((hw.RowError, hw.SchemaError), match=f"step 'rows'.*({told}|UTF8)"):
        environment().from_rows(rows)


def test_a_table_whose_offsets_lead_out_of_its_buffers_is_refused() -> None:
    ends = pa.py_buffer(np.array([0, 1 << 30, 1], np.int32))
    text = pa.Array.from_buffers(pa.string(), 2, [None, ends, pa.py_buffer(b"x")])
    with pytest.raises(hw.SchemaError, match="step 'rows': the table is damaged"):
        environment().from_rows(pa.table({"name": text}))


@each_poison
def test_a_parquet_file_with_such_a_row_is_refused_or_put_aside(tmp_path: Path, poison: str) -> None:
    rows, told = POISON[poison]
    pq.write_table(rows, tmp_path / "a.parquet")
    pq.write_table(ENDS, tmp_path / "b.parquet")
    env = environment()
    env.source(hw.connectors.read_files(tmp_path, watch=False, settle="0 s"), SCHEMA).sink(hw.connectors.memory())
    with pytest.raises(hw.SourceError, match=f"a.parquet cannot be read: {told}.*bad_records='dead_letters'"):
        env.run()
    env = environment()
    good, bad = hw.connectors.memory(), hw.connectors.memory()
    source = hw.connectors.read_files(tmp_path, watch=False, settle="0 s", bad_records="dead_letters")
    stream = env.source(source, SCHEMA)
    stream.sink(good)
    stream.side_output(hw.DEAD_LETTERS).sink(bad)
    env.run()
    assert [row.n for row in good.rows] == [1, 2]
    assert [(row.value, told in row.reason) for row in bad.rows] == [(b"a.parquet", True)]


def test_times_of_a_coarser_unit_do_not_wrap_around(tmp_path: Path) -> None:
    pq.write_table(pa.table({"at": pa.array([1 << 61], pa.timestamp("ms", "UTC"))}), tmp_path / "a.parquet")
    env = environment()
    env.source(hw.connectors.read_files(tmp_path, watch=False, settle="0 s"), "at timestamp").sink(
        hw.connectors.memory()
    )
    with pytest.raises(hw.SourceError, match=r"column 'at' holds .* would result in out of bounds timestamp"):
        env.run()


@pytest.mark.parametrize("year", ["0000", "-0001", "10000", "+12024"])
def test_records_with_far_years_are_put_aside_one_by_one(year: str) -> None:
    schema = hw.Schema.of("n bigint, at timestamp").arrow
    lines = [b'{"n": %d, "at": "%s-01-01T00:00:00Z"}' % (n, y) for n, y in enumerate((b"2024", year.encode(), b"2025"))]
    found = list(numbered_rows(list(enumerate(lines)), JsonFormat(), schema))
    assert [one[0][0] for one in found if isinstance(one, tuple)] == [1]
    assert [n for one in found if isinstance(one, pa.RecordBatch) for n in one.column("n").to_pylist()] == [0, 2]
    values = [(0, b"1,2024-01-01 00:00:00Z"), (1, b"2,%s-01-01 00:00:00Z" % year.encode())]
    read = list(numbered_rows(values, CsvFormat(), schema))
    assert [one[0][0] for one in read if isinstance(one, tuple)] == [1]


class Message:
    """A record of Kafka's, as the client gives it."""

    def __init__(self, value: bytes, at_ms: int, key: bytes = b"k") -> None:
        self._value, self._at_ms, self._key = value, at_ms, key

    def value(self) -> bytes:
        return self._value

    def key(self) -> bytes:
        return self._key

    def timestamp(self) -> tuple[int, int]:
        return 1, self._at_ms


def test_records_of_kafka_with_such_parts_are_put_aside_one_by_one() -> None:
    from headwater.connectors.kafka.records import RecordDecoder

    schema = hw.Schema.of("k string, sent timestamp, name string, at timestamp")
    decoder = RecordDecoder(schema, JsonFormat(), {"k": "key", "sent": "timestamp"})
    good = b'{"name": "a", "at": "2024-01-01T00:00:00Z"}'
    records = [
        Message(good, 5),
        Message(good, 1 << 61),
        Message(good, 5, key=b"\xff"),
        Message(good.replace(b'"a"', b'"\xff"'), 5),
        Message(good.replace(b"2024", b"0000"), 5),
        Message(good, 6),
    ]
    found = list(decoder.rows(records))  # type: ignore[arg-type]
    assert [one[1] for one in found if isinstance(one, tuple)] == [
        "its timestamp is 2305843009213693952 ms from 1970, and not of the years 1 to 9999",
        "its key is not UTF-8 text",
        "it is not UTF-8 text",
        "column 'at': a time is -62167219200000000 microseconds from 1970, and not of the years 1 to 9999",
    ]
    assert sum(len(one) for one in found if isinstance(one, pa.RecordBatch)) == 2


@each_poison
def test_a_log_takes_no_such_rows(tmp_path: Path, poison: str) -> None:
    rows, told = POISON[poison]
    topic = EventLog(tmp_path).create_topic("t", hw.Schema.of(SCHEMA).arrow)
    with pytest.raises(LogSchemaMismatch, match=told.partition(": ")[2]):
        topic.append(rows)
    assert topic.append(ENDS) is not None


# -- where rows leave: what is made on the way fails before the commit ----------------------------------------------


def refused(sink: hw.connectors.Sink, rows: pa.Table, *, schema: str = SCHEMA) -> str:
    """What is told of rows that a function makes; nothing of them is committed."""
    env, steps = environment(), []
    made = env.from_rows([(0,)] * len(rows), "i bigint").map_batches(lambda _: rows, schema)
    made.sink(sink, name="out")
    with pytest.raises(hw.PublishError) as raised:
        env.run(on_step=lambda step, _: steps.append(step.name))
    assert "COMMITTED" not in steps
    assert not raised.value.is_transient
    return str(raised.value)


SINKS: dict[str, Callable[[Path], hw.connectors.Sink]] = {
    "memory": lambda folder: hw.connectors.memory(),
    "console": lambda folder: ConsoleSink(io.StringIO()),
    "parquet": lambda folder: hw.connectors.files(folder / "out"),
    "json": lambda folder: hw.connectors.files(folder / "out", format="json"),
    "rolled": lambda folder: hw.connectors.files(folder / "out", roll_bytes=1 << 20),
}


@each_poison
@pytest.mark.parametrize("sink", SINKS)
def test_rows_that_no_output_can_be_given_fail_before_the_commit(tmp_path: Path, poison: str, sink: str) -> None:
    rows, told = POISON[poison]
    text = refused(SINKS[sink](tmp_path), rows)
    assert f"sink 'out' cannot take the rows of epoch 0: {told}" in text
    assert "the epoch is not committed and nothing is lost: drop or mend such rows" in text
    assert list(tmp_path.rglob("*out-*")) == []


@pytest.mark.parametrize(
    ("value", "size_bytes"), [("x" * 254, 256), ("é" * 127, 256), (":" * 85, 257), ("\x01" * 300, 902)]
)
def test_a_partition_whose_name_no_file_system_takes_fails_before_the_commit(
    tmp_path: Path, value: str, size_bytes: int
) -> None:
    rows = pa.table({"k": [value], "n": [1]})
    told = refused(hw.connectors.files(tmp_path, partition_by=["k"]), rows, schema="k string, n bigint")
    assert f"column 'k', which names folders, is {value[:5]!r}"[:-1] in told
    assert f"the folder's name would have {size_bytes} bytes, and 255 is the most" in told


def test_a_path_of_many_partitions_that_is_too_long_fails_before_the_commit(tmp_path: Path) -> None:
    names = [f"k{number}" for number in range(20)]
    rows = pa.table({**{name: ["x" * 250] for name in names}, "n": [1]})
    sink = hw.connectors.files(tmp_path, partition_by=names)
    told = refused(sink, rows, schema=", ".join([*(f"{name} string" for name in names), "n bigint"]))
    assert "the path would have" in told
    assert "4095 is the most" in told


@pytest.mark.parametrize("roll", [{}, {"roll_bytes": 1 << 20}])
def test_the_longest_name_is_published(tmp_path: Path, roll: dict[str, Any]) -> None:
    env = environment()
    rows = [("x" * 253, 1), ("é" * 126, 2), (":" * 84, 3)]
    env.from_rows(rows, "k string, n bigint").sink(hw.connectors.files(tmp_path, partition_by=["k"], **roll))
    env.run()
    assert sorted(len(path.name.encode()) for path in tmp_path.glob("k=*")) == [254, 254, 255]
    assert len(list(tmp_path.glob("k=*/*.parquet"))) == 3


def test_the_console_shows_letters_that_its_encoding_lacks() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    env = environment()
    env.from_rows([("é",)], "k string").sink(ConsoleSink(out), name="console")
    env.run()
    assert out.buffer.getvalue() == b'console 0 {"k": "\\xe9"}\n'  # type: ignore[attr-defined]
