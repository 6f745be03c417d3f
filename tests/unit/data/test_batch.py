from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Batch, concat, no_timestamps, timestamp_array, timestamp_list
from headwater.data.row_kinds import DELETE, INSERT, UPDATE_BEFORE


def batch(*values: int, key: bool = False) -> Batch:
    keys = pa.array([f"k{v}" for v in values]) if key else None
    return Batch(pa.table({"n": pa.array(values, pa.int64())}), np.array(values, np.int64) * 10, keys)


def test_taking_and_slicing_keep_rows_times_and_keys_together() -> None:
    taken = batch(1, 2, 3, 4, key=True).take(np.array([3, 0]))
    assert taken.table["n"].to_pylist() == [4, 1]
    assert taken.timestamps.tolist() == [40, 10]
    assert taken.key is not None
    assert taken.key.to_pylist() == ["k4", "k1"]
    sliced = batch(1, 2, 3, 4, key=True).slice(1, 2)
    assert sliced.key is not None
    assert (sliced.timestamps.tolist(), sliced.key.to_pylist()) == ([20, 30], ["k2", "k3"])


def test_batches_end_to_end_keep_their_order() -> None:
    whole = concat([batch(1, key=True), batch(2, 3, key=True)])
    assert whole.key is not None
    assert (whole.timestamps.tolist(), whole.key.to_pylist()) == ([10, 20, 30], ["k1", "k2", "k3"])


def test_a_key_that_not_all_batches_have_is_dropped() -> None:
    assert concat([batch(1, key=True), batch(2)]).key is None
    assert concat([batch(1), batch(2, key=True)]).key is None


def test_no_timestamp_is_none_in_python_and_the_smallest_number_inside() -> None:
    assert timestamp_list(no_timestamps(2)) == [None, None]
    assert timestamp_array([None, 5, -1]).tolist() == [MIN_TIMESTAMP, 5, -1]
    assert timestamp_list(timestamp_array([None, 5])) == [None, 5]
    assert timestamp_list(timestamp_array([])) == []


def test_kinds_stay_with_their_rows_and_rows_without_insert() -> None:
    changes = Batch(pa.table({"n": [1, 2]}), np.array([10, 20]), kinds=np.array([UPDATE_BEFORE, DELETE], np.int8))
    whole = concat([batch(0), changes])
    assert whole.kinds is not None
    assert whole.kinds.tolist() == [INSERT, UPDATE_BEFORE, DELETE]
    for part in (whole.take(np.array([2, 1])), whole.slice(1, 2)):
        assert part.kinds is not None
        assert sorted(zip(part.table["n"].to_pylist(), part.kinds.tolist(), strict=True)) == [(1, 1), (2, 3)]
    assert concat([batch(1), batch(2)]).kinds is None
