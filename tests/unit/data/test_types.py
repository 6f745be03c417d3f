from __future__ import annotations

import pytest

from headwater.data.schema import parse_type
from headwater.data.types import is_key_type, is_time_type


@pytest.mark.parametrize(
    "ddl", ["string", "bigint", "boolean", "date", "timestamp", "decimal(3,1)", "binary", "struct<a:int>"]
)
def test_exact_types_are_keys(ddl: str) -> None:
    assert is_key_type(parse_type(ddl))


@pytest.mark.parametrize("ddl", ["double", "float", "array<int>", "map<int,int>", "void", "struct<a:struct<b:float>>"])
def test_other_types_are_not(ddl: str) -> None:
    assert not is_key_type(parse_type(ddl))


def test_event_time_is_a_timestamp_or_a_number_of_milliseconds() -> None:
    assert [
        ddl for ddl in ("timestamp", "timestamp_ntz", "bigint", "int", "date") if is_time_type(parse_type(ddl))
    ] == [
        "timestamp",
        "timestamp_ntz",
        "bigint",
    ]
