from __future__ import annotations

import datetime as dt
import decimal
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.data.rows import converter, decode, encode, encode_rows, is_mutable, row_class
from headwater.data.schema import Schema, parse_type
from headwater.errors import RowError

UTC = dt.UTC
PARIS = dt.timezone(dt.timedelta(hours=2))
MICROSECOND = dt.timedelta(microseconds=1)


def integers(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    limit = 10**precision - 1
    with decimal.localcontext(prec=76):
        return st.integers(-limit, limit).map(lambda n: Decimal(n).scaleb(-scale, decimal.Context(prec=76)))


moments = st.datetimes(dt.datetime(1, 1, 2), dt.datetime(9999, 12, 30))  # noqa: DTZ001
LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": integers(8),
    "smallint": integers(16),
    "int": integers(32),
    "bigint": integers(64),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "string": st.text(st.characters(codec="utf-8"), max_size=5),
    "binary": st.binary(max_size=5),
    "date": st.dates(),
    "timestamp": moments.map(lambda moment: moment.replace(tzinfo=UTC)),
    "timestamp_ntz": moments,
    "interval": st.integers(-(1 << 62), 1 << 62).map(lambda n: n * MICROSECOND),
    "decimal(38,18)": decimals(38, 18),
    "decimal(3,3)": decimals(3, 3),
    "decimal(9,0)": decimals(9, 0),
    "void": st.none(),
}
KEYS = [ddl for ddl in LEAVES if ddl != "void"]
TypeAndValues = tuple[str, st.SearchStrategy[Any]]


def or_none(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values)


def struct_of(fields: list[TypeAndValues]) -> TypeAndValues:
    names = tuple(f"f{i}" for i in range(len(fields)))
    ddl = ",".join(f"{name}:{inner}" for name, (inner, _) in zip(names, fields, strict=True))
    cls = row_class(names)
    return f"struct<{ddl}>", st.tuples(*(or_none(values) for _, values in fields)).map(lambda values: cls(*values))


def nested(inner: st.SearchStrategy[TypeAndValues]) -> st.SearchStrategy[TypeAndValues]:
    return st.one_of(
        inner.map(lambda it: (f"array<{it[0]}>", st.lists(or_none(it[1]), max_size=3))),
        st.tuples(st.sampled_from(KEYS), inner).map(
            lambda it: (
                f"map<{it[0]},{it[1][0]}>",
                st.dictionaries(LEAVES[it[0]], or_none(it[1][1]), max_size=3),
            )
        ),
        st.lists(inner, min_size=1, max_size=3).map(struct_of),
    )


types_and_values = st.recursive(st.sampled_from(sorted(LEAVES.items())), nested, max_leaves=5)


@examples(80)
@given(st.data())
def test_any_values_of_any_type_come_back_through_arrow(data: st.DataObject) -> None:
    ddl, values = data.draw(types_and_values)
    column = data.draw(st.lists(or_none(values), max_size=6))
    array = encode(column, pa.field("c", parse_type(ddl)), "step")
    array.validate(full=True)
    assert decode(array) == column
    start = data.draw(st.integers(0, len(column)))
    assert decode(array.slice(start)) == column[start:]
    assert decode(pa.chunked_array([array.slice(0, start), array.slice(start)])) == column


@examples(60)
@given(st.data())
def test_what_state_keeps_is_what_a_round_trip_gives_back(data: st.DataObject) -> None:
    ddl, values = data.draw(types_and_values)
    value = data.draw(values)
    if value is not None:
        kept = converter(parse_type(ddl))(value)
        assert kept == decode(encode([kept], pa.field("c", parse_type(ddl)), "step"))[0]
        assert kept == value


@examples(30)
@given(st.data())
def test_rows_as_dicts_and_as_tuples_give_one_table(data: st.DataObject) -> None:
    columns = data.draw(st.lists(types_and_values, min_size=1, max_size=3))
    names = [f"c{i}" for i in range(len(columns))]
    schema = Schema.of(", ".join(f"{n} {ddl}" for n, (ddl, _) in zip(names, columns, strict=True)))
    rows = data.draw(st.lists(st.tuples(*(or_none(values) for _, values in columns)), max_size=4))
    table = encode_rows(rows, schema.arrow, "step")
    assert table.schema == schema.arrow
    assert encode_rows([dict(zip(names, row, strict=True)) for row in rows], schema.arrow, "step") == table
    mixed = [row if i % 2 else dict(zip(names, row, strict=True)) for i, row in enumerate(rows)]
    assert encode_rows(mixed, schema.arrow, "step") == table
    assert list(zip(*(decode(c) for c in table.columns), strict=True)) == rows


@pytest.mark.parametrize("ddl", sorted(LEAVES))
def test_a_column_of_nulls_comes_back(ddl: str) -> None:
    assert decode(encode([None, None], pa.field("c", parse_type(ddl)), "step")) == [None, None]


MISFITS = [
    ("bigint", 1.5, "expected int, got float"),
    ("bigint", True, "expected int, got bool"),
    ("bigint", "1", "expected int, got str"),
    ("bigint", 1 << 63, "does not fit 64 bits"),
    ("bigint", -(1 << 63) - 1, "does not fit 64 bits"),
    ("int", 1 << 31, "does not fit 32 bits"),
    ("smallint", 1 << 15, "does not fit 16 bits"),
    ("tinyint", 128, "does not fit 8 bits"),
    ("tinyint", Decimal(1), "expected int, got Decimal"),
    ("double", True, "expected float, got bool"),
    ("double", "1.0", "expected float, got str"),
    ("float", Decimal(1), "expected float, got Decimal"),
    ("float", 1e300, "does not fit 32 bits"),
    ("double", 10**400, "too large"),
    ("boolean", 1, "expected bool"),
    ("boolean", "true", "expected bool"),
    ("string", 5, "expected str, got int"),
    ("string", b"x", "expected str, got bytes"),
    ("string", "\ud800", "surrogate"),
    ("binary", "x", "expected bytes"),
    ("date", dt.datetime(2020, 1, 1, tzinfo=UTC), "expected a date, got a datetime"),
    ("date", "2020-01-01", "expected date, got str"),
    ("timestamp", dt.date(2020, 1, 1), "expected datetime, or int of milliseconds since the epoch, got date"),
    ("timestamp", 1.5, "expected datetime, or int of milliseconds since the epoch, got float"),
    ("timestamp", True, "expected datetime, or int of milliseconds since the epoch, got bool"),
    ("timestamp", 1_700_000_000_000_000_000, "not in the years 1 to 9999; is it of another unit?"),
    ("timestamp_ntz", -(10**18), "not in the years 1 to 9999; is it of another unit?"),
    ("timestamp_ntz", dt.datetime(2020, 1, 1, tzinfo=UTC), "without time zone"),
    ("interval", 5, "expected timedelta, got int"),
    ("interval", dt.timedelta.max, ""),
    ("decimal(5,2)", 1.5, "expected Decimal, got float"),
    ("decimal(5,2)", Decimal("1.234"), "more than 2 digits after the point"),
    ("decimal(5,2)", Decimal(1000), "does not fit 5 digits"),
    ("decimal(5,2)", Decimal("NaN"), "must be finite"),
    ("decimal(5,2)", Decimal("1e100"), ""),
    ("void", 1, "holds only None"),
    ("array<string>", "abc", "expected list or tuple, got str"),
    ("array<string>", ["a", 1], "expected str, got int"),
    ("array<bigint>", [1, 2.5], "expected int, got float"),
    ("map<string,bigint>", [("a", 1)], "expected dict, got list"),
    ("map<string,bigint>", {None: 1}, "expected str, got NoneType"),
    ("map<string,bigint>", {"a": 1.5}, "expected int, got float"),
    ("struct<a:int,b:int>", (1,), "expected a struct of"),
    ("struct<a:int,b:int>", {"a": 1, "c": 2}, "has fields"),
    ("struct<a:int>", (1.5,), "expected int, got float"),
    ("struct<a:int not null>", (None,), "expected int, got NoneType"),
]


@pytest.mark.parametrize(("ddl", "value", "why"), MISFITS)
def test_a_value_that_does_not_fit_is_named_with_step_and_field(ddl: str, value: object, why: str) -> None:
    good = {"bigint": 7}.get(ddl)
    with pytest.raises(RowError) as refused:
        encode_rows([("x", good), ("y", value)], Schema.of(f"k string, v {ddl}").arrow, "totals")
    message = str(refused.value)
    assert message.startswith("step 'totals', field 'v': value ")
    assert repr(value)[:40] in message
    assert why in message


def test_null_in_a_field_that_is_not_null_is_refused() -> None:
    schema = Schema.of("k string not null").arrow
    with pytest.raises(RowError, match="field 'k': value None does not fit string: the field is declared not null"):
        encode_rows([("a",), (None,)], schema, "step")


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"a": 1}, "lacks b"),
        ({"a": 1, "b": 2, "c": 3}, "has unknown c"),
        ({"a": 1, "c": 3}, "lacks b and has unknown c"),
        ((1,), "must have 2 values, for a, b"),
        ((1, 2, 3), "must have 2 values"),
        (5, r"got 5 \(int\); yield rows, not bare values"),
        ("ab", r"got 'ab' \(str\)"),
        (None, "NoneType"),
    ],
)
def test_a_row_of_another_shape_is_refused(row: object, problem: str) -> None:
    with pytest.raises(RowError, match=problem):
        encode_rows([(1, 2), row], Schema.of("a int, b int").arrow, "step")
    with pytest.raises(RowError, match=problem):
        encode_rows([row], Schema.of("a int, b int").arrow, "step")


def test_an_int_goes_into_a_double() -> None:
    assert decode(encode([1, 2.5, None], pa.field("c", pa.float64()), "step")) == [1.0, 2.5, None]


def test_not_a_number_is_kept() -> None:
    (value,) = decode(encode([math.nan], pa.field("c", pa.float64()), "step"))
    assert math.isnan(value)


def test_numbers_of_numpy_fit() -> None:
    assert decode(encode([np.int64(5)], pa.field("c", pa.int64()), "step")) == [5]
    assert decode(encode([np.float32(0.5)], pa.field("c", pa.float64()), "step")) == [0.5]
    assert decode(encode([np.bool_(True)], pa.field("c", pa.bool_()), "step")) == [True]


def test_a_naive_datetime_is_read_as_utc() -> None:
    naive = dt.datetime(1969, 7, 20, 20, 17, 0, 1)  # noqa: DTZ001
    assert decode(encode([naive], pa.field("c", parse_type("timestamp")), "step")) == [naive.replace(tzinfo=UTC)]


@pytest.mark.parametrize("ddl", ["timestamp", "timestamp_ntz"])
@pytest.mark.parametrize("millis", [0, 1_700_000_000_123, -1, -62_135_596_800_000, 253_402_300_799_999, np.int64(5)])
def test_an_int_is_milliseconds_since_the_epoch(ddl: str, millis: int) -> None:
    array = encode([millis, None], Schema.of(f"at {ddl}").arrow.field(0), "s")
    assert array.cast(pa.int64()).to_pylist() == [int(millis) * 1000, None]


def test_an_aware_datetime_is_moved_to_utc() -> None:
    moment = dt.datetime(1960, 1, 1, 1, 0, tzinfo=PARIS)
    (back,) = decode(encode([moment], pa.field("c", parse_type("timestamp")), "step"))
    assert back == moment
    assert (back.tzinfo, back.year, back.hour) == (UTC, 1959, 23)


def test_a_decimal_has_the_scale_of_its_type() -> None:
    (back,) = decode(encode([Decimal("1.5")], pa.field("c", parse_type("decimal(10,3)")), "step"))
    assert str(back) == "1.500"
    assert decode(encode([3], pa.field("c", parse_type("decimal(10,3)")), "step")) == [Decimal(3)]


def test_struct_values_have_names() -> None:
    (value,) = decode(encode([{"b": "x", "a": 1}], pa.field("c", parse_type("struct<a:int,b:string>")), "step"))
    assert (value.a, value.b) == (1, "x")


def test_what_is_kept_shares_nothing_with_what_was_given() -> None:
    given = {"a": [1, 2]}
    kept = converter(parse_type("map<string,array<int>>"))(given)
    given["a"].append(3)
    assert kept == {"a": [1, 2]}


def test_a_name_that_is_no_identifier_is_reached_by_position() -> None:
    row = row_class(("a b", "class", "c"))(1, 2, 3)
    assert (row[0], row[1], row.c) == (1, 2, 3)  # type: ignore[attr-defined]


def test_no_rows_give_an_empty_table_of_the_schema() -> None:
    schema = Schema.of("a int, b map<string,array<int>>").arrow
    assert encode_rows([], schema, "step") == schema.empty_table()


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("bigint", False),
        ("binary", False),
        ("struct<a:int,b:struct<c:string>>", False),
        ("array<int>", True),
        ("map<string,int>", True),
        ("struct<a:int,b:struct<c:array<int>>>", True),
    ],
)
def test_lists_and_maps_can_be_changed_in_place_and_what_holds_them(ddl: str, expected: bool) -> None:
    assert is_mutable(parse_type(ddl)) is expected
