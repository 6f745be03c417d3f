"""Dumps in the order of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headwater.state.table import sorted_by_key

STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])


@pytest.mark.parametrize(
    ("dtype", "keys", "order"),
    [
        (pa.int64(), [3, -1, 2], [1, 2, 0]),
        (pa.int8(), [3, 1, 3, 1], [1, 3, 0, 2]),
        (pa.int64(), [2, None, 1, None, 2], [2, 0, 4, 1, 3]),
        (pa.string(), ["b", None, "a", "b"], [2, 0, 3, 1]),
        (
            STRUCT,
            [{"a": 1, "b": "y"}, None, {"a": None, "b": None}, {"a": 1, "b": "x"}, {"a": 1, "b": "y"}],
            [3, 0, 4, 2, 1],
        ),
        (pa.int64(), [], []),
    ],
)
def test_rows_come_by_key_nulls_last_and_those_of_one_key_as_they_were(
    dtype: pa.DataType, keys: list[Any], order: list[int]
) -> None:
    table = pa.table({"key": pa.array(keys, dtype), "place": pa.array(range(len(keys)), pa.int64())})
    assert sorted_by_key(table)["place"].to_pylist() == order


def test_many_rows_of_few_numbers_stay_as_they_were_within_each() -> None:
    keys = np.random.default_rng(1).integers(0, 50, 10_000)
    table = pa.table({"key": keys, "place": np.arange(len(keys))})
    assert sorted_by_key(table)["place"].to_pylist() == sorted(range(len(keys)), key=lambda place: keys[place])
