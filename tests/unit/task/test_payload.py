from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.errors import ChangelogError
from headwater.task.payload import (
    DRIVER_LEVEL,
    EpochFacts,
    Payload,
    decode_payload,
    decode_report,
    encode_payload,
    encode_report,
    level_of,
    with_kinds_apart,
)

FACTS = EpochFacts(7, 1234)


def batch(key: pa.Array | None = None) -> Batch:
    return Batch(pa.table({"n": [1, None], "s": ["x", "ü"]}), np.array([MIN_TIMESTAMP, 5], np.int64), key)


@pytest.mark.parametrize("key", [None, pa.array(["a", None]), pa.array([{"x": 1}, {"x": 2}])])
def test_a_payload_comes_back_with_rows_times_and_keys(key: pa.Array | None) -> None:
    payload = Payload(3, 9, "source/ü", 4, FACTS, None, batch(key))
    back = decode_payload(encode_payload(payload))
    assert back.batch is not None
    assert back.batch.table == batch().table
    assert back.batch.timestamps.tolist() == [MIN_TIMESTAMP, 5]
    assert back.batch.key == key
    assert (back.level, back.port, back.channel, back.sequence, back.facts) == (3, 9, "source/ü", 4, FACTS)


@pytest.mark.parametrize("key", [None, pa.array(["a", None])])
def test_row_kinds_travel_beside_the_columns(key: pa.Array | None) -> None:
    changes = batch(key)
    changes.kinds = np.array([3, 0], np.int8)
    back = decode_payload(encode_payload(Payload(1, 0, "c", 0, FACTS, None, changes)))
    assert back.batch is not None
    assert back.batch.kinds is not None
    assert (back.batch.table.column_names, back.batch.kinds.tolist()) == (["n", "s"], [3, 0])
    assert back.batch.key == key


def test_kinds_that_were_a_column_when_rows_were_stored_are_taken_apart() -> None:
    stored = Batch(pa.table({"n": [1, 2], "row_kind": ["+I", "-D"]}), np.array([5, 6], np.int64))
    found = with_kinds_apart(decode_payload(encode_payload(Payload(1, 0, "c", 0, FACTS, None, stored))), "join").batch
    assert found is not None
    assert found.kinds is not None
    assert (found.table.column_names, found.kinds.tolist()) == (["n"], [0, 3])
    apart = Payload(1, 0, "c", 0, FACTS, None, found)
    assert with_kinds_apart(apart, "join") is apart


@pytest.mark.parametrize("watermark", [MIN_TIMESTAMP, -1, (1 << 63) - 1])
def test_a_watermark_travels_without_rows(watermark: int) -> None:
    back = decode_payload(encode_payload(Payload(1, 0, "c", 0, FACTS, watermark, None)))
    assert (back.watermark_ms, back.batch) == (watermark, None)


def test_the_level_can_be_read_without_the_rest() -> None:
    assert level_of(encode_payload(Payload(200, 0, "c", 0, FACTS, 5, None))) == 200
    assert level_of(encode_report({"a": 1})) == DRIVER_LEVEL
    assert decode_report(encode_report({"a": [1, None]})) == {"a": [1, None]}


def test_the_same_payload_gives_the_same_bytes() -> None:
    one, two = (encode_payload(Payload(1, 0, "c", 0, FACTS, None, batch(pa.array(["a", "b"])))) for _ in range(2))
    assert one == two


def test_chunks_and_slices_do_not_show() -> None:
    whole = pa.table({"n": [0, 1, 2, 3], "s": ["a", None, "c", "d"]})
    times = np.arange(4, dtype=np.int64)
    pieces = Batch(pa.concat_tables([whole.slice(1, 1), whole.slice(2, 1)]), times[1:3])
    back = decode_payload(encode_payload(Payload(1, 0, "c", 0, FACTS, None, pieces)))
    assert back.batch is not None
    assert back.batch.table == whole.slice(1, 2)
    assert back.batch.table["s"].num_chunks == 1


def test_a_payload_from_before_there_were_checks_is_read() -> None:
    stored = b'HW\x04\x02\x2e\x00\x00\x00[0, "rows/0", 3, 7, 1000, 990, true, false, 1]'
    assert len(stored) == 8 + stored[4]
    found = decode_payload(stored)
    assert found == Payload(2, 0, "rows/0", 3, EpochFacts(7, 1000), 990, None, idle=True, side=1)


@pytest.mark.parametrize("data", [b"", b"XX\x01\x01\x00\x00\x00\x00....", b"HW\x01\x01\x00\x00\x00\x00...."])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ChangelogError, match="rows between two levels cannot be read"):
        decode_payload(data)
