"""Values of every type survive as bytes, and the bytes of keys have the order of the keys."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.data.rows import converter, decode, encode
from headwater.data.schema import parse_type
from headwater.state.codec import key_codec, value_codec
from headwater.state.table import KeyedLayout

TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2300, 1, 1))  # noqa: DTZ001
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "tinyint": st.integers(-(1 << 7), (1 << 7) - 1),
    "smallint": st.integers(-(1 << 15), (1 << 15) - 1),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "bigint": st.integers(-(1 << 63), (1 << 63) - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(5,2)": st.decimals(-999, 999, places=2),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(decimal.Decimal),
    "decimal(38,38)": st.decimals(decimal.Decimal("-0.9"), decimal.Decimal("0.9"), places=20),
    "string": TEXT,
    "binary": st.binary(max_size=8),
    "date": st.dates(),
    "timestamp": st.datetimes(
        min_value=dt.datetime(1, 1, 2),  # noqa: DTZ001  so that UTC has a day for it
        timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=5, minutes=30))]),
    ),
    "timestamp_ntz": MOMENTS,
    "interval": st.timedeltas(dt.timedelta(-(10**6)), dt.timedelta(10**6)),
}
NESTED: dict[str, st.SearchStrategy[Any]] = {
    "array<string>": st.lists(st.none() | TEXT, max_size=4),
    "array<array<int>>": st.lists(st.none() | st.lists(st.none() | PLAIN["int"], max_size=3), max_size=3),
    "map<string,decimal(5,2)>": st.dictionaries(TEXT, st.none() | PLAIN["decimal(5,2)"], max_size=4),
    "map<struct<a:int,b:string>,array<double>>": st.dictionaries(
        st.tuples(PLAIN["int"], TEXT), st.none() | st.lists(PLAIN["double"], max_size=2), max_size=3
    ),
    "struct<a:bigint,b:timestamp,c:struct<d:array<date>,e:void>>": st.tuples(
        st.none() | PLAIN["bigint"],
        st.none() | PLAIN["timestamp"],
        st.none() | st.tuples(st.none() | st.lists(st.none() | PLAIN["date"], max_size=2), st.none()),
    ),
}
KEYS: dict[str, st.SearchStrategy[Any]] = {
    **{ddl: values for ddl, values in PLAIN.items() if ddl not in ("float", "double")},
    "struct<a:string,b:int>": st.tuples(st.none() | TEXT, st.none() | PLAIN["int"]),
    "struct<a:binary,b:struct<c:string,d:boolean>>": st.tuples(
        st.none() | PLAIN["binary"], st.none() | st.tuples(st.none() | TEXT, st.none() | st.booleans())
    ),
}


def same(left: Any, right: Any) -> bool:
    """Whether two values cannot be told apart: NaN is itself, zeros have signs, and rows have classes."""
    if isinstance(left, float):
        both = (math.isnan(left), math.copysign(1, left)), (math.isnan(right), math.copysign(1, right))
        return both[0] == both[1] and (math.isnan(left) or left == right)
    if isinstance(left, list | tuple):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return same(list(left.items()), list(right.items()))
    return type(left) is type(right) and bool(left == right)


@pytest.mark.parametrize("ddl", [*PLAIN, *NESTED])
@given(data=st.data())
def test_a_value_comes_back_as_it_was(ddl: str, data: st.DataObject) -> None:
    dtype = parse_type(ddl)
    value = converter(dtype)(data.draw({**PLAIN, **NESTED}[ddl]))
    codec = value_codec(dtype)
    found = codec.decode(codec.encode(value))
    assert same(found, value)
    (through_arrow,) = decode(encode([value], pa.field("value", dtype), "step"))
    assert same(found, through_arrow) or isinstance(value, decimal.Decimal)


@pytest.mark.parametrize("ddl", KEYS)
@given(data=st.data())
def test_bytes_of_keys_come_back_and_have_the_order_of_a_dump(ddl: str, data: st.DataObject) -> None:
    dtype = parse_type(ddl)
    convert = converter(dtype)
    drawn = data.draw(st.lists(st.none() | KEYS[ddl], max_size=8))
    keys = list(dict.fromkeys(None if key is None else convert(key) for key in drawn))
    codec = key_codec(dtype)
    for key in keys:
        assert codec.decode(codec.encode(key)) == key
    assert sorted(keys, key=codec.encode) == KeyedLayout("step", "it", dtype, []).sorted_keys(keys)
