from __future__ import annotations

import base64
import doctest
import json
import pickle

import pyarrow as pa
import pytest

from headwater.eventlog import EventLog, Retention
from headwater.eventlog import log as log_module
from headwater.eventlog.errors import (
    LogArgument,
    LogCorrupt,
    LogFormatUnknown,
    PartitionMissing,
    TopicExists,
    TopicMissing,
)

SCHEMA = pa.schema([("user", pa.int64()), pa.field("name", pa.string(), nullable=False, metadata={"k": "v"})])


def test_example_in_the_docstring_runs():
    failed, attempted = doctest.testmod(log_module)
    assert attempted > 0
    assert failed == 0


def test_log_folder_appears_with_the_first_topic(log):
    assert log.topics() == []
    assert not log.path.exists()
    log.create_topic("orders", SCHEMA)
    log.create_topic("clicks", SCHEMA)
    assert log.topics() == ["clicks", "orders"]


def test_settings_survive_reopening(log):
    log.create_topic("orders", SCHEMA, 3, segment_bytes=1000, retention=Retention(max_bytes=5, max_age_ms=7))
    topic = EventLog(str(log.path)).topic("orders")
    assert topic.schema.equals(SCHEMA, check_metadata=True)
    assert (topic.partitions, topic.segment_bytes, topic.retention) == (3, 1000, Retention(5, 7))
    assert topic.end_offsets() == topic.start_offsets() == {0: 0, 1: 0, 2: 0}


def test_descriptor_is_readable_and_exact(log):
    content = json.loads((log.create_topic("orders", SCHEMA).path / "topic.json").read_text())
    assert content["format"] == 1
    assert content["fields"][1] == {"name": "name", "type": "string", "nullable": False}
    exact = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(content["arrow_schema_base64"])))
    assert exact.equals(SCHEMA, check_metadata=True)


def test_missing_topic_lists_what_exists(log):
    log.create_topic("orders", SCHEMA)
    with pytest.raises(TopicMissing, match=r"it holds orders; create it with log.create_topic\('order'") as caught:
        log.topic("order")
    assert (caught.value.topic, caught.value.existing) == ("order", ["orders"])


def test_creating_twice_is_refused_unless_it_is_the_same(log):
    log.create_topic("orders", SCHEMA, 2)
    with pytest.raises(TopicExists, match="exist_ok=True"):
        log.create_topic("orders", SCHEMA, 2)
    assert log.create_topic("orders", SCHEMA, 2, exist_ok=True).partitions == 2
    with pytest.raises(TopicExists, match="number of partitions cannot change; stored is 2, asked for is 3"):
        log.create_topic("orders", SCHEMA, 3, exist_ok=True)
    with pytest.raises(TopicExists, match="schema cannot change"):
        log.create_topic("orders", pa.schema([("user", pa.int32())]), 2, exist_ok=True)


def test_unfinished_creation_is_not_a_topic_and_can_be_repeated(log):
    topic = log.create_topic("orders", SCHEMA)
    (topic.path / "topic.json").unlink()
    assert log.topics() == []
    with pytest.raises(TopicMissing):
        log.topic("orders")
    assert log.create_topic("orders", SCHEMA).end_offsets() == {0: 0}


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/b", ".hidden", "a b", "ü", "a\n", "a\0", "x" * 201, 7, None]
)
def test_names_that_could_leave_the_folder_are_refused(log, name):
    for call in (log.topic, lambda it: log.create_topic(it, SCHEMA)):
        with pytest.raises(LogArgument, match="topic's name must be"):
            call(name)


@pytest.mark.parametrize("name", ["a", "A-b_c.d", "-x", "0", "x" * 200])
def test_ordinary_names_are_taken(log, name):
    log.create_topic(name, SCHEMA)
    assert log.topics() == [name]


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([("a", pa.int8()), ("a", pa.int8())]),
        pa.schema([("a", pa.dictionary(pa.int8(), pa.string()))]),
        pa.schema([("a", pa.list_(pa.struct([("b", pa.dictionary(pa.int8(), pa.string()))])))]),
        7,
    ],
)
def test_schemas_that_frames_cannot_hold_are_refused(log, schema):
    with pytest.raises(LogArgument, match="schema"):
        log.create_topic("orders", schema)
    assert log.topics() == []


@pytest.mark.parametrize(
    "settings", [{"partitions": 0}, {"partitions": True}, {"segment_bytes": 0}, {"partitions": 1.5}]
)
def test_settings_are_checked(log, settings):
    with pytest.raises(LogArgument, match="must be a whole number"):
        log.create_topic("orders", SCHEMA, **settings)


def test_retention_is_checked():
    with pytest.raises(LogArgument, match=r"Retention.max_bytes must be a whole number, 0 or more; got -1"):
        Retention(max_bytes=-1)


@pytest.mark.parametrize("partition", [-1, 2, "0", None])
def test_partition_must_exist(log, partition):
    topic = log.create_topic("orders", SCHEMA, 2)
    with pytest.raises(PartitionMissing, match="has partitions 0 to 1"):
        topic.append(pa.table({"user": [1], "name": ["a"]}), partition)
    with pytest.raises(PartitionMissing):
        topic.read(partition, 0)


def test_topic_of_another_format_is_refused(log):
    path = log.create_topic("orders", SCHEMA).path / "topic.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 9'))
    with pytest.raises(LogFormatUnknown, match="must have log format 1; it has 9"):
        log.topic("orders")


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[]", b'{"format": 1}', b"\xff"])
def test_damaged_descriptor_is_named(log, content):
    path = log.create_topic("orders", SCHEMA).path / "topic.json"
    path.write_bytes(content)
    with pytest.raises(LogCorrupt) as caught:
        log.topic("orders")
    assert caught.value.path == str(path)


def test_pickled_topic_reopens(log):
    topic = log.create_topic("orders", SCHEMA)
    topic.append(pa.table({"user": [1], "name": ["a"]}))
    assert pickle.loads(pickle.dumps(topic)).end_offsets() == {0: 1}


def test_errors_survive_pickling(log):
    with pytest.raises(TopicMissing) as caught:
        log.topic("nope")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.topic) == (str(caught.value), "nope")
