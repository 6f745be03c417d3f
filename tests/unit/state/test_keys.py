from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.data.schema import parse_type
from headwater.state.keys import hash_keys, hash_of_one, key_groups, subtasks_of


def hashes(ddl: str, values: list[Any]) -> list[str]:
    return [f"{int(h):016x}" for h in hash_keys(pa.array(values, parse_type(ddl)))]


GOLDEN: list[tuple[str, list[Any], list[str]]] = [
    (
        "string",
        ["", "a", "ab", "ünï", None],
        ["0000000000000000", "66f6a845720d6b67", "3a24fd46c7b23e99", "dbe6198eb67870ed", "5851f42d4c957f2d"],
    ),
    ("binary", [b"", b"a", b"\x00"], ["0000000000000000", "66f6a845720d6b67", "3abf2a20650683e7"]),
    ("bigint", [0, 1, -1, 1 << 62], ["0000000000000000", "9ca066f1a4ab2eea", "d314d4f7bbe9a09e", "6554a70955a989a0"]),
    ("int", [0, 1, -1], ["0000000000000000", "9ca066f1a4ab2eea", "d314d4f7bbe9a09e"]),
    ("boolean", [False, True], ["0000000000000000", "9ca066f1a4ab2eea"]),
    ("date", [dt.date(1970, 1, 1), dt.date(1969, 12, 31)], ["0000000000000000", "d314d4f7bbe9a09e"]),
    (
        "timestamp",
        [dt.datetime(1970, 1, 1, tzinfo=dt.UTC), dt.datetime(1960, 1, 1, tzinfo=dt.UTC)],
        ["0000000000000000", "7c09f263ad4514b0"],
    ),
    ("interval", [dt.timedelta(0), dt.timedelta(-1)], ["0000000000000000", "b13feae2ce248dd1"]),
    ("decimal(10,2)", [Decimal("0.00"), Decimal("-1.50")], ["aee2ccb30cc18197", "b038950918ae347c"]),
    (
        "struct<a:string,b:int>",
        [("a", 1), ("a", None), (None, None), None],
        ["0556f6fe58134f6f", "965f76fb60ec3e61", "75dc72a511ff61de", "5851f42d4c957f2d"],
    ),
]


@pytest.mark.parametrize(("ddl", "values", "expected"), GOLDEN, ids=[ddl for ddl, _, _ in GOLDEN])
def test_the_hash_is_part_of_the_format_of_stored_state(ddl: str, values: list[Any], expected: list[str]) -> None:
    assert hashes(ddl, values) == expected


@examples(50)
@given(st.lists(st.one_of(st.none(), st.text(st.characters(codec="utf-8"), max_size=100)), min_size=1, max_size=10))
def test_a_key_hashes_alike_alone_and_in_company(values: list[str | None]) -> None:
    array = pa.array(values, pa.string())
    together = hash_keys(array).tolist()
    assert [hash_keys(array.slice(i, 1))[0] for i in range(len(values))] == together
    assert hash_keys(pa.chunked_array([array.slice(0, 1), array.slice(1)])).tolist() == together


NESTED = parse_type("struct<k:struct<a:string,b:boolean>,start:bigint,end:int>")


@given(
    st.lists(
        st.none()
        | st.tuples(
            st.none() | st.tuples(st.none() | st.text(), st.none() | st.booleans()),
            st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
            st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        )
    )
)
@examples(100)
def test_one_key_at_a_time_hashes_as_many_do(keys: list[Any]) -> None:
    hash_one = hash_of_one(NESTED)
    assert hash_one is not None
    as_dicts = [
        key and {"k": key[0] and dict(zip("ab", key[0], strict=True)), "start": key[1], "end": key[2]} for key in keys
    ]
    assert [hash_one(key) for key in keys] == hash_keys(pa.array(as_dicts, NESTED)).tolist()
    assert hash_of_one(parse_type("struct<a:decimal(9,2)>")) is None


def test_integers_hash_by_value_whatever_their_width() -> None:
    assert hashes("int", [5]) == hashes("bigint", [5]) == hashes("tinyint", [5])


def test_no_keys_have_no_hashes() -> None:
    for ddl in ("string", "bigint", "struct<a:string>"):
        assert len(hash_keys(pa.array([], parse_type(ddl)))) == 0


def test_groups_are_all_used_and_evenly() -> None:
    for keys in (pa.array(range(100_000)), pa.array([f"user-{i}" for i in range(100_000)])):
        counts = np.bincount(key_groups(keys, 128), minlength=128)
        assert counts.min() > 600
        assert counts.max() < 970


@pytest.mark.parametrize(("groups", "parallelism"), [(128, 1), (128, 2), (128, 3), (128, 128), (7, 5), (1, 1)])
def test_subtasks_own_contiguous_ranges_that_cover_all_groups(groups: int, parallelism: int) -> None:
    owners = subtasks_of(np.arange(groups), groups, parallelism)
    assert (np.diff(owners) >= 0).all()
    assert set(owners.tolist()) == set(range(parallelism))
    sizes = np.bincount(owners)
    assert sizes.max() - sizes.min() <= 1
