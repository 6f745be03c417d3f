"""Values to rows: what each format reads, what it refuses, and that a bad value harms nobody beside it."""

from __future__ import annotations

import base64
import datetime as dt
import io
import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.formats import Format, JsonFormat, format_of, sifted


def decoded(given: Format | str, ddl: str, *values: bytes) -> list[Any]:
    """Rows as tuples and, in their places, the reasons why values are none."""
    schema, found = hw.Schema.of(ddl).arrow, format_of(given, "test")
    found.check(schema, "test")

    def decode(some: Sequence[bytes]) -> pa.RecordBatch:
        table = found.decode(some, schema)
        assert table.schema == schema
        (batch,) = table.combine_chunks().to_batches()
        return batch

    rows: list[Any] = []
    for part in sifted(values, decode):
        rows += [part[1]] if isinstance(part, tuple) else [tuple(row.values()) for row in part.to_pylist()]
    return rows


# -- JSON -----------------------------------------------------------------------------------------------------------


def test_a_line_end_is_space_between_members_and_an_error_in_a_string() -> None:
    found = decoded("json", "k string", b'{"k":\n"a"\n}', b'{"k": "a\nb"}', b'{"k": "c"}')
    assert [found[0], found[2]] == [("a",), ("c",)]
    assert found[1].startswith("Invalid control character")


MOMENT = dt.datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=dt.UTC)
JSON = {
    "boolean": ("true", True),
    "tinyint": ("-5", -5),
    "bigint": (str(1 << 40), 1 << 40),
    "float": ("1.5", 1.5),
    "double": ("3", 3.0),
    "string": ('"\\u00e9\\n"', "é\n"),
    "binary": (f'"{base64.b64encode(bytes(range(9))).decode()}"', bytes(range(9))),
    "date": ('"2026-01-31"', dt.date(2026, 1, 31)),
    "timestamp": ('"2026-01-01T13:30:00.000005+01:00"', MOMENT),
    "timestamp_ntz": ('"2026-01-01 12:30:00.000005"', MOMENT.replace(tzinfo=None)),
    "decimal(10,2)": ("1.5", Decimal("1.50")),
    "decimal(38,2)": ('"123456789012345678901234567890.25"', Decimal("123456789012345678901234567890.25")),
    "array<date>": ('["2026-01-31", null]', [dt.date(2026, 1, 31), None]),
    "array<binary>": ('["AAE=", null]', [b"\x00\x01", None]),
    "map<string,int>": ('{"x": 1}', [("x", 1)]),
    "struct<x:int,y:array<string>>": ('{"y": ["a"], "z": 1}', {"x": None, "y": ["a"]}),
}


@pytest.mark.parametrize("ddl", JSON)
def test_json_values_of_many_types(ddl: str) -> None:
    text, value = JSON[ddl]
    assert decoded("json", f"v {ddl}", f'{{"other": [1, "x"], "v": {text}}}'.encode(), b'{"v": null}', b"{}") == [
        (value,),
        (None,),
        (None,),
    ]


def test_json_numbers_that_are_text_are_read_beside_others() -> None:
    values = [b'{"v": 1}', b'{"v": "NaN"}', b'{"v": 2.5}', b'{"v": "-Infinity"}', b'{"v": 3}', b'{"v": "nan"}']
    *found, last = decoded("json", "v double", *values)
    assert repr(found) == repr([(1.0,), (float("nan"),), (2.5,), (float("-inf"),), (3.0,)])
    assert "value 'nan' does not fit double" in last


def test_json_in_several_lines_is_one_row() -> None:
    value = json.dumps({"a": 1, "b": "x"}, indent=2).encode()
    assert decoded("json", "a int, b string", value, value + b"\r\n", b'{"a": 2}') == [(1, "x"), (1, "x"), (2, None)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "not a JSON object"),
        (b" \n", "not a JSON object"),
        (b"null", "not a JSON object"),  # Arrow's parser crashes when it meets nothing but these
        (b"[]", "not a JSON object"),
        (b"5", "not a JSON object"),
        (b'{"a": 1}{"a": 2}', "more than one JSON object"),
        (b'{"a": 1}null', "not a JSON object"),
        (b'{"a": 1}null{"a": 2}', "more than one JSON object"),
        (b'{"a": 1} x', "not a JSON object"),
        (b'{"a": 1, x}', "Expecting property name"),
        (b'{"a": 1', "not a JSON object"),
        (b'{"x": {"b": 1}', "Expecting ',' delimiter"),
        (b'{"a": 1.5}', "field 'a': value 1.5 does not fit int64"),
        (b'{"a": "1"}', "field 'a': value '1' does not fit int64"),
        (b'{"a": 1, "a": 2}', "specified twice"),
        (b'{"a": 1, "x": "\xff"}', "not UTF-8 text"),
    ],
)
def test_json_that_is_none_harms_nobody_beside_it(bad: bytes, reason: str) -> None:
    found = decoded("json", "a bigint", b'{"a": 0}', bad, b'{"a": 2}')
    assert (found[0], found[2:]) == ((0,), [(2,)])
    assert reason in found[1]
    assert decoded("json", "a bigint", bad) == [found[1]]


def test_json_values_that_would_make_up_for_each_other_are_both_bad() -> None:
    found = decoded("json", "a bigint", b'{"a": 1}{"a": 2}', b"  ", b'{"a": 3}')
    assert [isinstance(row, str) for row in found] == [True, True, False]
    found = decoded("json", "a bigint", b'{"a": 1, "x": [', b'{"a": 2}]}', b'{"a": 3}{"a": 4}')
    assert [isinstance(row, str) for row in found] == [True, True, True]


LINES = [
    (b'{"a": 1, "v": 0.5}', True),
    (b'{"a": null}\n{"a": 2, "x": {"b": "}"}}\n{}', True),
    (b"", False),
    (b'{"a": 1}\n\n{"a": 2}', False),
    (b'{"a": 1}\r\n{"a": 2}', False),
    (b' {"a": 1}', False),
    (b'{"a": 1}{"a": 2}\n{"a": 3}', False),
    (b'{"a": 1, "x": {"b": 1}\n{"a": 2}', False),
    (b'{"a": 1, "x": "}\n{"}', False),
    (b'{"a": "1"}\n{"a": 2}', False),
    (b'{"a": 1, "v": "NaN"}', False),
    (b'{"a": 1, "x": "\xff"}', False),
]


@pytest.mark.parametrize(("lines", "is_plain"), LINES)
def test_json_lines_that_are_an_object_each_are_read_at_once_as_one_by_one(lines: bytes, is_plain: bool) -> None:
    schema = hw.Schema.of("a bigint, v double").arrow
    found = JsonFormat().decode_lines(pa.py_buffer(lines), schema)
    assert (found is not None) == is_plain
    assert found is None or found.equals(JsonFormat().decode(lines.split(b"\n"), schema))


def test_csv_values_that_would_make_up_for_each_other_are_both_bad() -> None:
    found = decoded("csv", "a string, b string", b'1,"x', b'2,y"', b"3,z\n4,u", b"5,v")
    assert [isinstance(row, str) for row in found] == [True, False, True, False]
    found = decoded("csv", "a string, b string", b'x","y', b'2,y"', b"3,z\n4,u", b"5,v")
    assert [isinstance(row, str) for row in found] == [True, False, True, False]


def test_json_texts_that_do_not_fit_are_told_with_their_name() -> None:
    assert "member 'd': " in decoded("json", "d date", b'{"d": "soon"}')[0]
    assert "member 'b': " in decoded("json", "b binary", b'{"b": "%%%"}')[0]


FAR = ["1e-77", "1e-99999999", "1.E-77", "0." + "0" * 90 + "1", "1e99", "1e-3"]


@pytest.mark.parametrize("text", FAR)
@pytest.mark.parametrize("ddl", ["d decimal(38,2)", "d decimal(38,2), m map<string,int>", "d array<decimal(38,2)>"])
def test_a_decimal_far_from_its_point_is_refused_and_no_other_number(ddl: str, text: str) -> None:
    forms = [text, f'"{text}"', f' "{text}"\t', '"' + "".join(f"\\u00{ord(letter):02x}" for letter in text) + '"']
    if "E" in text:  # no number of JSON, but a text of a decimal
        forms = forms[1:]
    inside = "[%s]" if "array" in ddl else "%s"
    values = [f'{{"d": {inside % form}}}'.encode() for form in ("1e3", *forms, "1.5")]
    first, *far, last = decoded("json", ddl, *values)
    assert all(isinstance(row, str) for row in far)
    assert (first[0], last[0]) in ((1000, Decimal("1.5")), ([1000], [Decimal("1.5")]))


@pytest.mark.parametrize("text", FAR)
def test_a_decimal_of_csv_far_from_its_point_is_refused_and_no_other_number(text: str) -> None:
    lines = decoded("csv", "d decimal(38,2), t string", b"1e3,x", f"{text},y".encode(), b" 1.5,1e9", b"1_0,z")
    assert [isinstance(row, str) for row in lines] == [False, True, False, True]
    assert (lines[0], lines[2]) == ((1000, "x"), (Decimal("1.5"), "1e9"))


def test_keys_of_maps_that_do_not_fit_are_refused() -> None:
    values = (b'{"m": {"true": 1, "false": 2}}', b'{"m": {"x": 1}}', b'{"m": {"": 1}}')
    found = decoded("json", "m map<boolean,int>", *values)
    assert found[0] == ([(True, 1), (False, 2)],)
    assert all("expected the key true or false" in row for row in found[1:])
    assert isinstance(decoded("json", "m map<int,int>", b'{"m": {"x": 1}}')[0], str)


def test_true_is_no_decimal() -> None:
    for ddl in ("d decimal(5,2)", "d decimal(5,2), m map<string,int>"):
        assert isinstance(decoded("json", ddl, b'{"d": true}')[0], str)


# -- CSV ------------------------------------------------------------------------------------------------------------


def test_csv_values_of_many_types() -> None:
    ddl = "a bigint, b string, c timestamp, d date, e decimal(5,2), f boolean, g double, h timestamp_ntz, i binary"
    line = b'1,"x, ""y""",2026-01-01T12:30:00.000005Z,2026-01-31,1.5,true,2.5,2026-01-01 12:30:00.000005,z'
    value = (1, 'x, "y"', MOMENT, dt.date(2026, 1, 31), Decimal("1.50"), True, 2.5, MOMENT.replace(tzinfo=None), b"z")
    assert decoded("csv", ddl, line, b"," * 8, line + b"\r\n") == [value, (None,) * 9, value]


def test_csv_text_in_quotes_is_never_null_and_may_have_line_ends() -> None:
    assert decoded("csv", "a int, b string", b'1,""', b"2,", b'3,"x\ny"', b'4,z"') == [
        (1, ""),
        (2, None),
        (3, "x\ny"),
        (4, 'z"'),
    ]


def test_csv_of_one_column_may_be_empty() -> None:
    assert decoded("csv", "a string", b"x", b"", b'""', b"") == [("x",), (None,), ("",), (None,)]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"1", "Expected 2 columns, got 1"),
        (b"1,x,y", "Expected 2 columns, got 3"),
        (b"x,1", "invalid value 'x'"),
        (b"1,x\n2,y", "not one line of CSV"),
        (b'1,"x', "not one line of CSV"),
        (b"1,\xff", "invalid UTF8 data"),
    ],
)
def test_csv_that_is_none_harms_nobody_beside_it(bad: bytes, reason: str) -> None:
    found = decoded("csv", "a bigint, b string", b"0,a", bad, b'2,b"', b"3,c")
    assert (found[0], found[2:]) == ((0, "a"), [(2, 'b"'), (3, "c")])
    assert reason in found[1]
    assert decoded("csv", "a bigint, b string", bad) == [found[1]]


# -- raw and Avro ---------------------------------------------------------------------------------------------------


def test_raw_values_are_bytes_or_text() -> None:
    assert decoded("raw", "v binary", b"\xff", b"") == [(b"\xff",), (b"",)]
    assert decoded("raw", "v string", b"\xc3\xa9", b"\xff", b"") == [("é",), "it is not UTF-8 text", ("",)]


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "note", "type": ["null", "string"], "default": None},
    ],
}


def avro_value(**fields: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), {"at": MOMENT, "tags": {}, **fields})
    return out.getvalue()


@pytest.mark.parametrize("framed", [False, True])
def test_avro_records_give_columns_by_name(framed: bool) -> None:
    frame = b"\0\0\0\0\7" if framed else b""
    found = hw.connectors.avro(json.dumps(AVRO), framed=framed)
    values = [frame + avro_value(id=1, tags={"a": 1}, note="é"), frame + avro_value(id=2)]
    moment = MOMENT.replace(microsecond=0)
    assert decoded(found, "note string, id bigint, at timestamp, tags map<string,int>", *values) == [
        ("é", 1, moment, [("a", 1)]),
        (None, 2, moment, []),
    ]


def test_avro_that_is_none_harms_nobody_beside_it() -> None:
    good = avro_value(id=1)
    plain, framed = hw.connectors.avro(AVRO), hw.connectors.avro(AVRO, framed=True)
    found = decoded(plain, "id bigint", good, good[:-1], good + b"\0\0", b"", good)
    assert (found[0], found[4]) == ((1,), (1,))
    assert ["not a record" in found[1], "2 bytes are left" in found[2], "not a record" in found[3]] == [True] * 3
    assert "framing of a schema registry" in decoded(framed, "id bigint", good[:3])[0]
    assert "field 'id': " in decoded(plain, "id tinyint", avro_value(id=300))[0]


# -- refused while the job is built ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "ddl", "problem"),
    [
        ("xml", "a int", "reads json, csv, raw or hw.connectors.avro"),
        ("json", "a interval", "cannot read column 'a' from JSON; got '.*'; declare another"),
        ("csv", "a array<int>", "cannot read column 'a' from CSV"),
        ("raw", "a string, b string", "puts the value into one column"),
        ("raw", "a int", "puts the value into one column"),
    ],
)
def test_what_a_format_cannot_give_is_refused(given: str, ddl: str, problem: str) -> None:
    with pytest.raises(hw.GraphError, match=problem):
        decoded(given, ddl)


def test_avro_schemas_and_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(hw.GraphError, match="needs the Avro schema of a record"):
        hw.connectors.avro("{")
    with pytest.raises(hw.GraphError, match="needs the Avro schema of a record"):
        hw.connectors.avro('"long"')
    with pytest.raises(hw.GraphError, match="choose from id, at, tags, note"):
        decoded(hw.connectors.avro(AVRO), "price double")
