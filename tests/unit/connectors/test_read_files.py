"""Files in: each file once and whole, in an order that lasts, and what is wrong with one is said."""

from __future__ import annotations

import datetime as dt
import gzip
import json
import os
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.connectors.files.formats import READERS
from headwater.connectors.files.unpacked import Unpacked

OLD = 1_700_000_000


def put(folder: Path, name: str, *numbers: int, at: int = OLD) -> Path:
    """A file of JSON lines that was written long ago."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f'{{"n": {number}}}\n' for number in numbers))
    os.utime(path, (at, at))
    return path


def numbers(folder: Path, **settings: Any) -> hw.connectors.Source:
    return hw.connectors.read_files(folder, format="json", **settings)


def read(source: hw.connectors.Source, schema: str = "n bigint", **settings: Any) -> list[Any]:
    env = hw.Environment("files", engine="local", **settings)
    return env.source(source, schema).collect()


def remembering(source: hw.connectors.Source, folder: Path, schema: str = "n bigint") -> hw.connectors.Source:
    folder.mkdir(parents=True, exist_ok=True)
    source.remember_in(folder)
    source.check(hw.Schema.of(schema))
    return source


@pytest.mark.parametrize(("order", "expected"), [("modified", [3, 1, 2]), ("name", [1, 2, 3])])
def test_files_are_read_in_the_order_of_their_times_or_their_names(
    tmp_path: Path, order: str, expected: list[int]
) -> None:
    put(tmp_path, "a", 1, at=OLD + 2)
    put(tmp_path, "b", 2, at=OLD + 2)
    put(tmp_path, "c", 3, at=OLD)
    assert [row.n for row in read(numbers(tmp_path, order=order))] == expected


def test_files_that_come_later_are_read_after_all_others_and_none_twice(tmp_path: Path) -> None:
    put(tmp_path / "in", "b", 1)
    source = remembering(numbers(tmp_path / "in"), tmp_path / "notes")
    assert source.latest({}, 0) == {"0": 1}
    put(tmp_path / "in", "a", 2, at=OLD - 5)  # older, and found later
    put(tmp_path / "in", "c", 3)
    assert source.latest({}, 0) == {"0": 3}
    again = remembering(numbers(tmp_path / "in"), tmp_path / "notes")
    for one in (source, again):
        batches = list(one.read("0", 0, 3))
        assert [batch["n"].to_pylist() for batch in batches if isinstance(batch, pa.RecordBatch)] == [[1], [2], [3]]
    assert again.latest({}, 0) == {"0": 3}


def test_splits_share_the_files(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / "in", f"{number}.json", number)
    source = remembering(numbers(tmp_path / "in", splits=2), tmp_path / "notes")
    assert source.latest({}, 0) == {"0": 3, "1": 2}
    rows = {split: [batch["n"][0].as_py() for batch in source.read(split, 0, at)] for split, at in (("0", 3), ("1", 2))}  # type: ignore[index]
    assert rows == {"0": [0, 2, 4], "1": [1, 3]}
    with pytest.raises(hw.SourceError, match="dealt to 2 splits, the source has 3; give the source splits=2"):
        remembering(numbers(tmp_path / "in", splits=3), tmp_path / "notes").latest({}, 0)


@pytest.mark.parametrize("most_rows", [1, 1_000], ids=["few rows", "many"])
def test_an_epoch_reads_so_many_files_however_many_rows_it_may_have(tmp_path: Path, most_rows: int) -> None:
    for number in range(5):
        put(tmp_path, f"{number}.json", number)
    env, sink = hw.Environment("files", engine="local", max_rows_per_epoch=most_rows), hw.connectors.memory()
    env.source(numbers(tmp_path, watch=False, max_files_per_epoch=2), "n bigint", name="in").sink(sink)
    seen: list[int] = []
    env.run(on_step=lambda step, epoch: seen.append(len(sink.rows)) if step is hw.EpochStep.PUBLISHED else None)
    assert seen == [2, 4, 5]


def test_names_that_are_hidden_and_patterns_that_do_not_fit_are_passed_over(tmp_path: Path) -> None:
    for name in ("_SUCCESS", ".part", "_headwater/x.json", "deep/_tmp/x.json", "x.txt", "deep/er/y.json"):
        put(tmp_path, name, 0)
    put(tmp_path, "deep/x.json", 1)
    assert [row.n for row in read(numbers(tmp_path, pattern="*/*.json"))] == [1]
    assert [row.n for row in read(numbers(tmp_path, pattern="**/*.json", order="name"))] == [0, 1]


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "", "a/../../*"])
def test_a_pattern_cannot_leave_the_folder(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(hw.GraphError, match="needs a pattern below its folder"):
        numbers(tmp_path, pattern=pattern)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    put(tmp_path, "secret", 7)
    put(tmp_path / "in", "a", 1)
    (tmp_path / "in" / "b").symlink_to(tmp_path / "secret")
    with pytest.raises(hw.SourceError, match=r"in/b cannot be read: it is a link out of the folder"):
        read(numbers(tmp_path / "in"))


def test_a_file_that_was_just_written_is_left_for_later(tmp_path: Path) -> None:
    put(tmp_path / "in", "old", 1)
    source = remembering(numbers(tmp_path / "in", settle="1 h"), tmp_path / "notes")
    assert source.latest({}, 0) == {"0": 1}
    new = put(tmp_path / "in", "new", 2)
    os.utime(new)
    assert source.latest({}, 0) == {"0": 1}
    os.utime(new, (OLD, OLD))
    assert source.latest({}, 0) == {"0": 2}


def test_the_first_look_waits_for_files_that_were_just_written(tmp_path: Path) -> None:
    for watch in (True, False):
        os.utime(put(tmp_path / str(watch), "new", 1))
        assert len(read(numbers(tmp_path / str(watch), watch=watch, settle="200 ms"))) == 1


def test_without_watching_the_input_is_what_was_there_at_the_first_start(tmp_path: Path) -> None:
    put(tmp_path / "in", "a", 1)
    source = remembering(numbers(tmp_path / "in", watch=False), tmp_path / "notes")
    assert source.latest({}, 0) == {"0": 1}
    put(tmp_path / "in", "b", 2)
    assert source.latest({}, 0) == {"0": 1}
    assert remembering(numbers(tmp_path / "in", watch=False), tmp_path / "notes").latest({}, 0) == {"0": 1}


def test_each_line_of_the_ledger_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headwater.connectors.files.ledger import Ledger

    lines: list[bytes] = []
    line_of = Ledger._line
    monkeypatch.setattr(Ledger, "_line", lambda self, line: lines.append(line) or line_of(self, line))  # type: ignore[func-returns-value]
    (tmp_path / "in").mkdir()
    source = remembering(numbers(tmp_path / "in"), tmp_path / "notes")
    for number in range(4):
        put(tmp_path / "in", f"{number}.json", number)
        source.latest({}, 0)
        source.latest({}, 0)
    assert len(lines) == 5


def test_a_ledger_whose_last_line_is_torn_is_mended(tmp_path: Path) -> None:
    put(tmp_path / "in", "a", 1)
    remembering(numbers(tmp_path / "in"), tmp_path / "notes").latest({}, 0)
    ledger = tmp_path / "notes" / "files.jsonl"
    with ledger.open("a") as out:
        out.write('{"number": 1, "pa')
    put(tmp_path / "in", "b", 2)
    assert remembering(numbers(tmp_path / "in"), tmp_path / "notes").latest({}, 0) == {"0": 2}
    assert [json.loads(line).get("path") for line in ledger.read_text().splitlines()] == [None, "a", "b"]


def damages() -> dict[str, Any]:
    return {
        r"it was found and is gone": lambda path: path.unlink(),
        r"it has changed since it was found: it has 18 bytes": lambda path: put(path.parent, path.name, 1, 2),
        r"it has changed since it was found: it has 9 bytes": lambda path: os.utime(path, (OLD, OLD + 1)),
    }


@pytest.mark.parametrize("problem", damages())
def test_a_file_that_is_not_what_was_found_is_named(tmp_path: Path, problem: str) -> None:
    path = put(tmp_path / "in", "a", 1)
    source = remembering(numbers(tmp_path / "in"), tmp_path / "notes")
    source.latest({}, 0)
    damages()[problem](path)
    with pytest.raises(hw.SourceError, match=rf"in/a cannot be read: {problem}.*; put the file back as it was"):
        list(source.read("0", 0, 1))


BAD = {
    "json": (b'{"n": 1}\n\n{"n": "x"}\n', r"line 3: field 'n': value 'x' does not fit int64"),
    "csv": (b"n\n1\nx\n", "conversion error to int64"),
    "parquet": (b"PAR1 no", "."),
}


@pytest.mark.parametrize("format", BAD)
def test_a_file_that_cannot_be_read_stops_the_job_or_is_a_dead_letter(tmp_path: Path, format: str) -> None:  # noqa: A002
    content, reason = BAD[format]
    (tmp_path / "bad").write_bytes(content)
    os.utime(tmp_path / "bad", (OLD, OLD))
    with pytest.raises(hw.SourceError, match=rf"bad cannot be read: (.|\n)*{reason}"):
        read(hw.connectors.read_files(tmp_path, format=format))
    env, good, bad = hw.Environment("files", engine="local"), hw.connectors.memory(), hw.connectors.memory()
    source = hw.connectors.read_files(tmp_path, format=format, bad_records="dead_letters", watch=False)
    rows = env.source(source, "n bigint")
    rows.sink(good)
    rows.side_output(hw.DEAD_LETTERS).sink(bad)
    env.run()
    assert good.rows == []
    assert [(row.split, row.position, row.value) for row in bad.rows] == [("0", 0, b"bad")]


def test_json_lines_that_are_no_objects_are_named(tmp_path: Path) -> None:
    for content, reason in (
        ('{"n": 1}\n[1]', "line 2: it is not a JSON object"),
        ('{"n": 1', "line 1: it is not a JSON object"),
    ):
        path = tmp_path / "bad"
        path.write_text(content)
        os.utime(path, (OLD, OLD))
        with pytest.raises(hw.SourceError, match=reason):
            read(numbers(tmp_path))


ALL = (
    "k string, n bigint, i int, x double, f float, d decimal(5,2), at timestamp, local timestamp_ntz, day date, "
    "b binary, ok boolean"
)
AT = dt.datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=dt.UTC)
VALUES = ("ä", 1 << 60, 7, 0.1, 0.5, Decimal("1.25"), AT, AT.replace(tzinfo=None), dt.date(1960, 1, 2), b"ab", True)
NESTED = "tags array<string>, by map<string,array<int>>, s struct<a:int,at:timestamp>, e array<struct<x:decimal(5,2)>>"
NESTED_VALUES = (["a", None], {"x": [1], "y": None}, (5, AT), [(Decimal("2.50"),)])


@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_what_the_files_sink_writes_comes_back(tmp_path: Path, format: str) -> None:  # noqa: A002
    schema, values = ALL + ", took interval", (*VALUES, dt.timedelta(seconds=90))
    if format == "json":
        schema, values = ALL, VALUES
    if format != "csv":
        schema, values = f"{schema}, {NESTED}", (*values, *NESTED_VALUES)
    rows = [values, (None,) * len(values), ("", *values[1:3], float("-inf"), *values[4:])]
    env = hw.Environment("files", engine="local")
    env.from_rows(rows, schema).sink(hw.connectors.files(tmp_path, format=format))
    env.run()
    source = hw.connectors.read_files(tmp_path, format=format, settle="0 s")
    assert [tuple(row) for row in read(source, schema)] == rows


def test_fields_that_are_missing_are_null_and_others_are_passed_over(tmp_path: Path) -> None:
    schema = "n int, s struct<a:int,b:string>, z string"
    (tmp_path / "a.json").write_text('{"n": 1, "s": {"b": "x", "q": 1}, "other": [1]}\n{}\n')
    (tmp_path / "a.csv").write_text('other,n\n1,1\n2,\n"",3')
    pq.write_table(pa.table({"n": [1], "s": [{"b": "x"}], "other": [2]}), tmp_path / "a.parquet")
    expected = [(1, (None, "x"), None)]

    def found(format: str, schema: str) -> list[Any]:  # noqa: A002
        return read(hw.connectors.read_files(tmp_path, format=format, pattern=f"*.{format}", settle="0 s"), schema)

    assert found("json", schema) == [*expected, (None, None, None)]
    assert found("parquet", schema) == expected
    assert found("csv", "n int, z string") == [(1, None), (None, None), (3, None)]


def test_what_must_not_be_null_is_not(tmp_path: Path) -> None:
    put(tmp_path, "a", 1)
    with pytest.raises(hw.SourceError, match="field 'z': value None does not fit string: the field is declared not"):
        read(numbers(tmp_path), "n int, z string not null")
    pq.write_table(pa.table({"n": [1]}), tmp_path / "b.parquet")
    source = hw.connectors.read_files(tmp_path, pattern="*.parquet", settle="0 s")
    with pytest.raises(hw.SourceError, match="column 'z' is declared not null, and 1 values are null"):
        read(source, "n int, z string not null")


def test_parquet_of_other_widths_and_encodings_is_taken_and_text_for_numbers_is_not(tmp_path: Path) -> None:
    table = pa.table(
        {
            "n": pa.array([1], pa.int8()),
            "k": pa.array(["a"]).dictionary_encode(),
            "at": pa.array([1_500], pa.timestamp("ns")),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    source = hw.connectors.read_files(tmp_path, settle="0 s")
    assert read(source, "n bigint, k string, at timestamp") == [
        (1, "a", dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC))
    ]
    with pytest.raises(hw.SourceError, match="column 'k' holds string, not int64: text is not taken for anything"):
        read(source, "k bigint")
    with pytest.raises(hw.SourceError, match="column 'n' holds int8, not timestamp"):
        read(source, "n timestamp")


def test_packed_text_is_unpacked(tmp_path: Path) -> None:
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"n": 1}\n{"n": 2}'))
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b'{"n": 1}\n{"n": 2}')[:-12])
    source = numbers(tmp_path, pattern="a*", settle="0 s")
    assert [row.n for row in read(source)] == [1, 2]
    with pytest.raises(hw.SourceError, match=r"b\.json\.gz cannot be read"):
        read(numbers(tmp_path, pattern="b*", settle="0 s"))


def test_rows_can_tell_the_file_that_they_come_from(tmp_path: Path) -> None:
    put(tmp_path, "deep/a", 1, 2)
    metadata = {"file": "path", "bytes": "size_bytes", "at": "modified"}
    source = numbers(tmp_path, pattern="*/*", metadata=metadata)
    rows = read(source, "file string, n int, bytes bigint, at timestamp")
    assert [tuple(row) for row in rows] == [("deep/a", n, 18, dt.datetime.fromtimestamp(OLD, dt.UTC)) for n in (1, 2)]
    with pytest.raises(hw.GraphError, match="puts the path of a file into a file string"):
        read(source, "file int, n int, bytes bigint, at timestamp")
    with pytest.raises(hw.GraphError, match="tells of a file its path, size_bytes, modified; got 'owner'"):
        numbers(tmp_path, metadata={"by": "owner"})


def test_what_a_format_has_no_form_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hw.GraphError, match="cannot read the nested field 't' from CSV"):
        read(hw.connectors.read_files(tmp_path, format="csv"), "t array<int>")
    with pytest.raises(hw.GraphError, match="cannot read the interval 't' from JSON"):
        read(numbers(tmp_path), "t interval")
    with pytest.raises(hw.GraphError, match="reads parquet, json, csv; got 'avro'"):
        hw.connectors.read_files(tmp_path, format="avro")
    with pytest.raises(hw.GraphError, match="needs a column of the files"):
        read(numbers(tmp_path, metadata={"file": "path"}), "file string")
    with pytest.raises(hw.SourceError, match="there is no such folder"):
        read(numbers(tmp_path / "none"))


def test_a_schema_can_be_looked_up(tmp_path: Path) -> None:
    with pytest.raises(hw.SourceError, match=r"there is no file that fits '\*'; declare the schema"):
        hw.connectors.infer_schema(tmp_path)
    table = pa.table({"n": pa.array([1], pa.uint8()), "at": pa.array([0], pa.timestamp("ns", "Europe/Paris"))})
    pq.write_table(table, tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text('{"n": 1, "s": {"tags": ["a"]}}\n{"x": 0.5}\n')
    (tmp_path / "a.csv").write_text("n,day,k\n1,2024-01-01,a\n")
    schemas = {
        kind: hw.connectors.infer_schema(tmp_path, kind, pattern=f"*.{kind}").ddl()
        for kind in ("parquet", "json", "csv")
    }
    assert schemas == {
        "parquet": "n smallint, at timestamp",
        "json": "n bigint, s struct<tags:array<string>>, x double",
        "csv": "n bigint, day date, k string",
    }
    pq.write_table(pa.table({"t": pa.array([0], pa.time64("us"))}), tmp_path / "a.parquet")
    with pytest.raises(hw.SchemaError, match=r"column 't': type 'time64\[us\]' is not supported"):
        hw.connectors.infer_schema(tmp_path, pattern="*.parquet")


def job(folder: Path, sink: Any) -> hw.Environment:
    env = hw.Environment("files", engine="local", checkpoint_interval="1 ms")
    env.source(numbers(folder, max_files_per_epoch=2), "n bigint", name="in").sink(sink)
    return env


def test_a_job_goes_on_from_a_savepoint_with_the_files_it_has_not_read(tmp_path: Path) -> None:
    for number in range(5):
        put(tmp_path / "in", f"{9 - number}.json", number, at=OLD + number)
    sink = hw.connectors.memory()
    path = run_epochs(job(tmp_path / "in", sink), 1).stop(savepoint=tmp_path / "sp")
    assert sorted(file.name for file in (path / "sources" / "in").iterdir()) == ["files.jsonl"]
    put(tmp_path / "in", "0.json", 5, at=OLD - 10)
    shutil.move(tmp_path / "in", tmp_path / "moved")
    job(tmp_path / "moved", sink).run(from_=path, bounded=True)
    assert [row.n for row in sink.rows] == [0, 1, 2, 3, 4, 5]


def test_an_epoch_that_failed_reads_the_same_files_again(tmp_path: Path) -> None:
    put(tmp_path, "b", 1)
    env, sink = (
        hw.Environment("files", engine="local", restart=hw.restart.fixed(1, delay="1 ms")),
        hw.connectors.memory(),
    )
    env.source(numbers(tmp_path), "n bigint", name="in").sink(sink)
    failed: list[int] = []

    def fail_once(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.STAGED and not failed:
            failed.append(epoch)
            put(tmp_path, "a", 0, at=OLD - 1)
            raise RuntimeError("once")

    env.run(bounded=True, on_step=fail_once)
    assert [row.n for row in sink.rows] == [1]


@pytest.mark.parametrize("text", ["1e-77", "1e-99999999", "0." + "0" * 90 + "1", "1e99", "1_0", "x"])
def test_decimals_of_csv_are_read_by_their_digits_or_refused(tmp_path: Path, text: str) -> None:
    schema = hw.Schema.of("d decimal(38,2), t string").arrow
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    good.write_text('d,t\n 1.5,1e9\n1e3,x\n,y\n"-.25",\n')
    rows = [row for batch in READERS["csv"](good, schema, Unpacked(good, 1 << 20)) for row in batch.to_pylist()]
    assert [row["d"] for row in rows] == [Decimal("1.5"), 1000, None, Decimal("-0.25")]
    bad.write_text(f"d,t\n1.5,x\n{text},y\n")
    with pytest.raises(ValueError, match="column 'd'"):
        list(READERS["csv"](bad, schema, Unpacked(bad, 1 << 20)))
