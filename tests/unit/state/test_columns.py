from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.state.columns import column_of

NOON = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
TYPES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.int8(), [1, -128, 127]),
    (pa.int32(), [1, -5, 7]),
    (pa.int64(), [1, -(2**63), 2**63 - 1]),
    (pa.float32(), [0.5, -0.0, float("inf")]),
    (pa.float64(), [0.1, -0.0, 1e300]),
    (pa.bool_(), [True, False, True]),
    (pa.date32(), [dt.date(2024, 1, 1), dt.date(1, 1, 1), dt.date(9999, 1, 1)]),
    (pa.timestamp("us", "UTC"), [NOON, NOON + dt.timedelta(microseconds=1), NOON]),
    (pa.duration("us"), [dt.timedelta(1), dt.timedelta(microseconds=-1), dt.timedelta(0)]),
    (pa.decimal128(38, 2), [Decimal("1.25"), Decimal("-999999999999999999999.99"), Decimal("0.00")]),
    (pa.string(), ["a", "", "ünï"]),
    (pa.binary(), [b"a", b"", b"\0"]),
    (pa.list_(pa.int64()), [[1, 2], [], [None, 3]]),
    (pa.struct([("x", pa.int64()), ("y", pa.string())]), [(1, "a"), (None, None), (2, "b")]),
]


def places(*of: int) -> Any:
    return np.array(of, np.int64)


@pytest.mark.parametrize(("dtype", "values"), TYPES, ids=lambda of: str(of) if isinstance(of, pa.DataType) else "")
def test_a_column_gives_back_what_was_put(dtype: pa.DataType, values: list[Any]) -> None:
    first, second, third = (
        pa.array([v], dtype) if not pa.types.is_struct(dtype) else pa.array([dict(zip("xy", v, strict=True))], dtype)
        for v in values
    )
    null = pa.nulls(1, dtype)
    column = column_of(dtype)
    column.put(places(0, 1, 2), pa.concat_arrays([first, second, null]))
    assert column.take(places(2, 0, 0, 1)).equals(pa.concat_arrays([null, first, first, second]))
    column.put(places(2, 0, 3), pa.concat_arrays([second, null, second, third, first])[1:4][0:3].take([1, 0, 2]))
    taken = column.take(places(0, 1, 2, 3))
    assert taken.equals(pa.concat_arrays([null, second, second, third]))
    taken.validate(full=True)


@pytest.mark.parametrize("dtype", [pa.int64(), pa.bool_(), pa.decimal128(20, 0), pa.string()], ids=str)
def test_what_was_under_a_null_is_not_written_out(dtype: pa.DataType) -> None:
    column = column_of(dtype)
    column.put(places(0), pa.array([1]).cast(dtype))
    column.put(places(0), pa.nulls(1, dtype))
    fresh = column_of(dtype)
    fresh.put(places(0), pa.nulls(1, dtype))
    written, expected = (at.take(places(0)).buffers()[1] for at in (column, fresh))
    assert (written and written.to_pybytes()) == (expected and expected.to_pybytes())


def test_the_last_value_of_a_place_stays() -> None:
    column = column_of(pa.int64())
    column.put(places(0, 1, 0, 0), pa.array([1, 2, 3, 4]))
    assert column.take(places(0, 1)).to_pylist() == [4, 2]


@pytest.mark.parametrize("dtype", [pa.int64(), pa.bool_(), pa.string()], ids=str)
def test_a_column_grows(dtype: pa.DataType) -> None:
    column = column_of(dtype)
    for start in range(0, 10_000, 1_000):
        at = np.arange(start, start + 1_000)
        column.put(at, pa.array(at % 2).cast(dtype))
    assert column.take(np.arange(10_000)).equals(pa.array(np.arange(10_000) % 2).cast(dtype))


def test_nothing_is_put_and_taken() -> None:
    for dtype, _ in TYPES:
        column = column_of(dtype)
        column.put(places(), pa.array([], dtype))
        assert column.take(places()).equals(pa.array([], dtype))


def test_lists_that_are_put_again_and_again_leave_their_old_items_out() -> None:
    column = column_of(pa.list_(pa.int64()))
    for count in range(200):
        column.put(places(0, 1), pa.array([[count] * 100, [1, 2]]))
    assert column.take(places(1, 0)).to_pylist() == [[1, 2], [199] * 100]
    assert column._end < 2_000  # type: ignore[attr-defined]
