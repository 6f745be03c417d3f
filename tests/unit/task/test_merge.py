from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.task.merging import merge
from headwater.task.payload import EpochFacts, Payload

NONE = MIN_TIMESTAMP


def payload(channel: str, sequence: int, *times: int) -> Payload:
    names = [f"{channel}{sequence}.{i}" for i in range(len(times))]
    batch = Batch(pa.table({"row": names}), np.array(times, np.int64)) if times else None
    return Payload(1, 0, channel, sequence, EpochFacts(0, 0), None, batch)


def merged(*payloads: Payload) -> list[str]:
    batch = merge(list(payloads))
    return [] if batch is None else batch.table["row"].to_pylist()


def test_without_rows_there_is_nothing() -> None:
    assert merge([]) is None
    assert merge([payload("a", 0), payload("b", 0)]) is None


def test_one_channel_keeps_its_order_even_out_of_order() -> None:
    assert merged(payload("a", 0, 9, 1), payload("a", 1, 5)) == ["a0.0", "a0.1", "a1.0"]


def test_channels_are_merged_by_event_time_then_by_channel() -> None:
    assert merged(payload("a", 0, 1, 5, 9), payload("b", 0, 2, 5, 8)) == [
        "a0.0",
        "b0.0",
        "a0.1",
        "b0.1",
        "b0.2",
        "a0.2",
    ]


def test_a_row_out_of_order_does_not_overtake_its_channel() -> None:
    assert merged(payload("a", 0, 7, 1), payload("b", 0, 3)) == ["b0.0", "a0.0", "a0.1"]


def test_the_running_maximum_goes_on_over_payloads_of_a_channel() -> None:
    assert merged(payload("a", 0, 7), payload("a", 1, 1), payload("b", 0, 3)) == ["b0.0", "a0.0", "a1.0"]


def test_rows_without_a_time_come_first_channel_by_channel() -> None:
    assert merged(payload("a", 0, NONE, NONE), payload("b", 0, NONE, 4)) == ["a0.0", "a0.1", "b0.0", "b0.1"]


@examples(50)
@given(st.dictionaries(st.sampled_from("abc"), st.lists(st.lists(st.integers(-5, 5), max_size=4), max_size=3)))
def test_any_merge_keeps_every_channel_in_order_and_backlogs_in_step(channels: dict[str, list[list[int]]]) -> None:
    payloads = [payload(c, i, *times) for c, parts in sorted(channels.items()) for i, times in enumerate(parts)]
    rows = merged(*payloads)
    assert len(rows) == sum(len(times) for parts in channels.values() for times in parts)
    reached: dict[str, int] = {}
    last = -99
    for row in rows:
        channel, (part, place) = row[0], map(int, row[1:].split("."))
        reached[channel] = max(reached.get(channel, -99), channels[channel][part][place])
        assert reached[channel] >= last
        last = reached[channel]
    for channel in channels:
        own = [row for row in rows if row[0] == channel]
        assert own == sorted(own)
