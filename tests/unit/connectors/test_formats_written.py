"""Rows as values: what is written can be read again, and what cannot be written is refused before a job starts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.formats import Format, format_of

MOMENT = dt.datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=dt.UTC)
FLAT = "n long, ok boolean, x double, price decimal(5,2), day date, at timestamp, text string, raw binary"
ROWS = [
    (1, True, 0.1, Decimal("1.50"), dt.date(2026, 1, 1), MOMENT, 'a "quoted", text', b"ab"),
    (-1, False, -1e300, Decimal("-0.01"), dt.date(1969, 12, 31), MOMENT, "", b""),
    (None,) * 8,
]
RECORD = {
    "type": "record",
    "name": "row",
    "fields": [{"name": "n", "type": ["null", "long"]}, {"name": "s", "type": "string", "default": "-"}],
}


def table(schema: str, rows: list[Any]) -> pa.Table:
    arrow = hw.Schema.of(schema).arrow
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(values, f.type) for values, f in zip(columns, arrow, strict=True)], schema=arrow)


def values_of(given: Format | str, rows: pa.Table) -> list[bytes]:
    values = format_of(given, "out").encode(rows)
    assert all(value is not None for value in values)
    return list(values)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["json", "csv"])
def test_what_is_written_is_read_again(name: str) -> None:
    rows = table(FLAT, ROWS)
    read = [format_of(name, "out").decode([value], rows.schema) for value in values_of(name, rows)]
    assert pa.concat_tables(read).to_pylist() == rows.to_pylist()


def test_nested_values_are_json() -> None:
    schema = "tags array<string>, by map<string,int>, at struct<x:double,day:date>"
    rows = table(schema, [(["a", None], [("k", 1)], {"x": float("nan"), "day": dt.date(2026, 1, 1)})])
    assert values_of("json", rows) == [
        b'{"tags": ["a", null], "by": {"k": 1}, "at": {"x": "NaN", "day": "2026-01-01"}}'
    ]


def test_raw_values_are_the_column_and_may_be_missing() -> None:
    assert list(format_of("raw", "out").encode(table("v string", [("é",), (None,)]))) == ["é".encode(), None]


def test_avro_records_are_read_again() -> None:
    avro = hw.connectors.avro(RECORD)
    rows = table("n long, s string", [(1, "x"), (None, "")])
    assert avro.decode(values_of(avro, rows), rows.schema).to_pylist() == rows.to_pylist()
    assert values_of(avro, table("n long", [(1,)])) == [b"\x02\x02\x02-"]


def test_a_row_that_does_not_fit_the_avro_schema_is_told() -> None:
    with pytest.raises(hw.RowError, match="does not fit the Avro schema"):
        hw.connectors.avro(RECORD).encode(table("n long, s string", [(1, None)]))


@pytest.mark.parametrize(
    ("given", "schema", "problem"),
    [
        ("csv", "v array<int>", "cannot write column 'v' as CSV; got 'array<int>'"),
        ("raw", "v long", "with format='raw' writes one column, a string or binary"),
        ("raw", "k long, v string, w string", "with format='raw' writes one column, a string or binary"),
        (hw.connectors.avro(RECORD), "s string", "needs a column for the field 'n' of the Avro record"),
        (hw.connectors.avro(RECORD), "n long, m long", "writes columns that the Avro record has fields for; got 'm'"),
        (hw.connectors.avro(RECORD, framed=True), "n long", "cannot write framed Avro"),
    ],
)
def test_columns_that_cannot_be_written_are_refused(given: Format | str, schema: str, problem: str) -> None:
    with pytest.raises(hw.GraphError, match=f"step 'out' {problem}"):
        format_of(given, "out").value_columns(hw.Schema.of(schema).arrow, {"k"}, "out")


def test_columns_of_key_and_headers_need_no_place_in_the_value() -> None:
    arrow = hw.Schema.of("k long, n long, s string").arrow
    assert hw.connectors.avro(RECORD).value_columns(arrow, {"k"}, "out") == ["n", "s"]
    assert format_of("json", "out").value_columns(arrow, {"k"}, "out") == ["k", "n", "s"]
    assert format_of("raw", "out").value_columns(hw.Schema.of("k long, v binary").arrow, {"k"}, "out") == ["v"]
