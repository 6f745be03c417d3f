"""What a Kafka source refuses before it asks any server."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import headwater as hw


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"servers": ""}, "needs servers"),
        ({"topics": []}, "reads topics, or those that match pattern="),
        ({"pattern": "x"}, "reads topics, or those that match pattern="),
        ({"topics": None, "pattern": "("}, "needs a regular expression"),
        ({"start": "yesterday"}, "starts somewhere"),
        ({"start": {"t": {0: -1}}}, "starts somewhere"),
        ({"start": dt.datetime(2026, 1, 1)}, "starts at a time with a zone"),  # noqa: DTZ001
        (
            {"metadata": {"user": "sender"}},
            "knows no part of a record for column 'user'; got 'sender'; choose from key",
        ),
        ({"bad_records": "drop"}, "needs bad_records= fail or dead_letters"),
        ({"on_lost": "cry"}, "needs on_lost= fail or skip"),
        ({"options": {"group.id": "g"}}, "sets option 'group.id' itself; got 'group.id'; use group="),
    ],
)
def test_bad_arguments_are_refused_when_the_source_is_made(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(hw.GraphError, match=problem):
        hw.connectors.kafka(**{"topics": "orders", "servers": "host:9092", **settings})


@pytest.mark.parametrize(
    ("metadata", "schema", "problem"),
    [
        ({"k": "key"}, "k int", "puts a record's key into a column of type string or binary; got 'k int'"),
        ({"at": "timestamp"}, "at bigint", "puts a record's timestamp into a column of type timestamp"),
        ({}, "m interval", "cannot read column 'm' from JSON"),
    ],
)
def test_columns_that_do_not_fit_are_refused_before_the_start(metadata: Any, schema: str, problem: str) -> None:
    rows = hw.Environment("kafka", engine="local").source(
        hw.connectors.kafka("orders", "127.0.0.1:1", metadata=metadata), schema
    )
    with pytest.raises(hw.GraphError, match=problem):
        rows.collect()
