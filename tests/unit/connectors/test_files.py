from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pytest

import headwater as hw

SCHEMA = "k string, n long, x double, d decimal(5,2), at timestamp, day date, took interval, b binary, ok boolean"
AT = dt.datetime(1969, 12, 31, 23, 59, 59, 500, tzinfo=dt.UTC)
ROWS: list[Any] = [
    ('a "quoted", b', 1, 0.5, Decimal("1.25"), AT, dt.date(1960, 1, 2), dt.timedelta(seconds=90), b"\x00\xff", True),
    (None,) * 9,
]


def write(folder: Path, *, format: str, rows: list[Any] = ROWS, schema: str = SCHEMA, **settings: Any) -> None:  # noqa: A002
    env = hw.Environment("files", engine="local", **settings)
    env.from_rows(rows, schema).sink(hw.connectors.files(folder, format=format))
    env.run()


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file())


def test_parquet_comes_back_with_its_types(tmp_path: Path) -> None:
    write(tmp_path, format="parquet")
    table = ds.dataset(tmp_path, format="parquet").to_table()
    assert table.schema.equals(hw.Schema.of(SCHEMA).arrow)
    assert [tuple(row.values()) for row in table.to_pylist()] == ROWS


def test_json_is_one_object_a_line(tmp_path: Path) -> None:
    nested = "k string, tags array<string>, m map<string,int>, s struct<a:int>"
    write(tmp_path, format="json", rows=[("ü", ["a"], {"x": 1}, (5,)), (None,) * 4], schema=nested)
    lines = [json.loads(line) for path in files_of(tmp_path) for line in path.read_text().splitlines()]
    assert lines == [{"k": "ü", "tags": ["a"], "m": {"x": 1}, "s": {"a": 5}}, dict.fromkeys(("k", "tags", "m", "s"))]


def test_json_writes_values_it_has_no_type_for_as_text(tmp_path: Path) -> None:
    write(tmp_path, format="json")
    first = json.loads(files_of(tmp_path)[0].read_text().splitlines()[0])
    assert (first["d"], first["at"], first["b"]) == ("1.25", "1969-12-31T23:59:59.000500+00:00", "AP8=")


def test_csv_has_a_header_and_quotes(tmp_path: Path) -> None:
    write(tmp_path, format="csv", rows=[row[:6] for row in ROWS], schema=", ".join(SCHEMA.split(", ")[:6]))
    (path,) = files_of(tmp_path)
    table = pa_csv.read_csv(path)
    assert table.column_names == ["k", "n", "x", "d", "at", "day"]
    assert table["k"].to_pylist()[0] == 'a "quoted", b'


def test_csv_takes_every_flat_type_but_bytes_that_are_no_text(tmp_path: Path) -> None:
    write(tmp_path / "text", format="csv", rows=[(*ROWS[0][:7], b"text", True)])
    assert len(files_of(tmp_path / "text")) == 1
    with pytest.raises(hw.PublishError, match="'sink' cannot take the rows of epoch 0: Invalid UTF8"):
        write(tmp_path / "bytes", format="csv")
    assert files_of(tmp_path / "bytes") == []


def test_csv_refuses_nested_fields(tmp_path: Path) -> None:
    with pytest.raises(hw.GraphError, match="cannot write the nested field 'tags' as CSV"):
        write(tmp_path, format="csv", rows=[], schema="tags array<string>")


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(hw.GraphError, match="writes parquet, json, csv; got 'avro'"):
        hw.connectors.files(tmp_path, format="avro")


@pytest.mark.parametrize("format", ["parquet", "json", "csv"])
def test_readers_of_the_folder_never_see_staged_files(tmp_path: Path, format: str) -> None:  # noqa: A002
    """At every step of the epoch protocol, what a reader finds is whole, committed epochs."""
    seen: dict[str, set[int]] = {}

    def look(step: hw.EpochStep, epoch: int) -> None:
        found = ds.dataset(tmp_path, format=format, schema=hw.Schema.of("n long").arrow).to_table()
        seen.setdefault(step.name, set()).add(len(found) - 10 * epoch)
        assert found["n"].to_pylist() == list(range(len(found)))

    env = hw.Environment("files", engine="local", max_rows_per_epoch=10)
    env.from_rows([(i,) for i in range(30)], "n long").sink(hw.connectors.files(tmp_path, format=format))
    env.run(on_step=look)
    assert seen["STAGED"] == seen["MANIFEST"] == seen["COMMITTED"] == {0}
    assert seen["PUBLISHED"] == seen["CLEANED"] == {10}


def test_every_epoch_is_listed(tmp_path: Path) -> None:
    write(tmp_path, format="json", rows=[(i,) for i in range(25)], schema="n long", max_rows_per_epoch=10)
    listed = [json.loads(line) for line in (tmp_path / "_headwater" / "manifest.jsonl").read_text().splitlines()]
    assert [(entry["epoch"], [f["rows"] for f in entry["files"]]) for entry in listed] == [
        (0, [10]),
        (1, [10]),
        (2, [5]),
    ]
    assert sorted(f["name"] for entry in listed for f in entry["files"]) == [path.name for path in files_of(tmp_path)]


def test_the_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    write(tmp_path, format="json")
    with pytest.raises(hw.PublishError, match="holds the output of another run"):
        write(tmp_path, format="json")
    sink = hw.connectors.files(tmp_path)
    with pytest.raises(hw.PublishError, match="holds the output of another run"):
        sink.open("sink", "other job", hw.Schema.of("n long"), resumed=True)
