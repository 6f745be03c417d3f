"""The words of settings as types are those that are taken when a program runs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

import pyarrow as pa
import pytest

import headwater as hw
from headwater import words


def rows(name: str = "rows") -> hw.Step:
    return hw.Environment("words", engine="local").from_rows([], "k string, n long", name=name)


def joined(how: Any) -> Any:
    stream = rows()
    return stream.join_regular(stream, on="k", how=how)


def by_time(time: Any) -> Any:
    stream = rows()
    return stream.interval_join(stream, ("0 s", "1 s"), on="k", time=time)


def in_windows(how: Any) -> Any:
    stream = rows()
    return stream.join(stream, how=how).where("k").equal_to("k").window(hw.tumbling("1 s")).apply()


def timed(how: Any) -> Any:
    stream = rows()
    return stream.temporal_join(stream, on="k", how=how)


TAKEN: dict[Any, list[Callable[[Any], Any]]] = {
    words.EngineName: [lambda word: hw.Environment("words", engine=word)],
    words.Checkpointing: [lambda word: hw.Environment("words", checkpointing=word)],
    words.StateBackendName: [lambda word: hw.Environment("words", state_backend=word)],
    words.TimeDomain: [by_time],
    words.RegularJoinHow: [joined],
    words.WindowJoinHow: [in_windows],
    words.TemporalJoinHow: [timed],
    words.LookupJoinHow: [lambda word: rows().lookup_join(pa.table({"k": ["a"], "v": [1]}), on="k", how=word)],
    words.PanesMode: [lambda word: rows().key_by("k").window(hw.tumbling("1 s")).panes(word)],
    words.FileFormat: [
        lambda word: hw.connectors.files("out", format=word),
        lambda word: hw.connectors.read_files("in", format=word),
    ],
    words.FileOrder: [lambda word: hw.connectors.read_files("in", order=word)],
    words.RecordFormat: [
        lambda word: hw.connectors.kafka("t", "host", format=word),
        lambda word: hw.connectors.kafka_sink("t", "host", format=word),
        lambda word: hw.connectors.socket("host", 1, format=word),
    ],
    words.BadRecords: [
        lambda word: hw.connectors.kafka("t", "host", bad_records=word),
        lambda word: hw.connectors.read_files("in", bad_records=word),
        lambda word: hw.connectors.socket("host", 1, bad_records=word),
    ],
    words.LostRecords: [lambda word: hw.connectors.kafka("t", "host", on_lost=word)],
    words.Delivery: [lambda word: hw.connectors.kafka_sink("t", "host", delivery=word)],
    words.SinkMode: [
        lambda word: hw.connectors.kafka_sink("t", "host", key="k", mode=word),
        lambda word: hw.connectors.postgres("env:DB", "t", key="k" if word == "upsert" else None, mode=word),
    ],
    words.StartName: [
        lambda word: hw.connectors.log("log", "t", start=word),
        lambda word: hw.connectors.kafka("t", "host", start=word),
    ],
}


@pytest.mark.parametrize(("choice", "take"), [(c, take) for c, takes in TAKEN.items() for take in takes])
def test_every_word_is_taken_and_no_other(choice: Any, take: Callable[[Any], Any]) -> None:
    for word in get_args(choice):
        take(word)
    with pytest.raises(hw.HeadwaterError, match="another"):
        take("another")


@pytest.mark.parametrize(
    ("choice", "python"),
    [
        (words.IntType, int),
        (words.FloatType, float),
        (words.StringType, str),
        (words.BooleanType, bool),
        (words.TimestampType, datetime),
    ],
)
def test_values_of_typed_state_are_of_that_type(choice: Any, python: type) -> None:
    for ddl in get_args(choice):
        given = 1 if python is datetime else python(1)
        assert type(hw.ValueState(ddl, default=given).default) is python
