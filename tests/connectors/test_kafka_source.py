"""Kafka topics as a source, against a real broker: formats, metadata, places to start, and all that can go wrong."""

from __future__ import annotations

import datetime as dt
import importlib
import json
import pickle
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import NewPartitions, OffsetSpec
from tests.parts.kafka import KafkaBroker, login
from tests.parts.waiting import until

import headwater as hw
from headwater.connectors.contract import Source

kafka_source = importlib.import_module("headwater.connectors.kafka.source")  # the function hides the package
ORDER = "user string, amount bigint"
RAW: dict[str, Any] = {"format": "raw"}
PLACE = {"t": "topic", "p": "partition", "o": "offset"}
PLACED = "v string, t string, p int, o bigint"


def two_partitions() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("topic", [2], indirect=True)


def send(broker: KafkaBroker, topic: str, *values: Any, **record: Any) -> None:
    producer = Producer({"bootstrap.servers": broker.servers, "message.max.bytes": 8 << 20})
    for value in values:
        producer.produce(topic, value, **{"partition": 0, **record})
    assert producer.flush(20) == 0


def source(broker: KafkaBroker, topic: Any, **settings: Any) -> Source:
    return hw.connectors.kafka(topic, broker.servers, **{"timeout": "10 s", **settings})


def collected(found: Source, schema: str, **settings: Any) -> list[tuple[Any, ...]]:
    env = hw.Environment("kafka", engine="local", **settings)
    return [tuple(row) for row in env.source(found, schema).collect()]


# -- what a record becomes ------------------------------------------------------------------------------------------


def test_values_are_read_by_their_format(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b'{"user": "ann", "amount": 1, "more": true}', b'{"user": "bob"}', None)
    assert collected(source(kafka, topic), ORDER) == [("ann", 1), ("bob", None), (None, None)]
    assert collected(source(kafka, topic, start={topic: {0: 1}}, **RAW), "v string") == [('{"user": "bob"}',), (None,)]


def test_csv_and_avro_values(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b"ann,1", b'"b, c",2')
    assert collected(source(kafka, topic, format="csv"), ORDER) == [("ann", 1), ("b, c", 2)]
    fields = [{"name": "amount", "type": "long"}, {"name": "user", "type": "string"}]
    avro = hw.connectors.avro({"type": "record", "name": "Order", "fields": fields}, framed=True)
    send(kafka, topic, b"\0\0\0\0\1" + b"\x0e" + b"\x06ann")
    assert collected(source(kafka, topic, format=avro, start={topic: {0: 2}}), ORDER) == [("ann", 7)]


def test_parts_of_a_record_become_columns(kafka: KafkaBroker, topic: str) -> None:
    headers = [("trace", b"\x01"), ("trace", b"\x02"), ("empty", None)]
    send(kafka, topic, b"x", key=b"k", timestamp=1_700_000_000_123, headers=headers)
    send(kafka, topic, None)
    named = {"user": "key", "at": "timestamp", "h": "headers", **PLACE}
    schema = "h array<struct<key string, value binary>>, user string, v binary, at timestamp, t string, p int, o bigint"
    env = hw.Environment("kafka", engine="local")
    first, second = env.source(source(kafka, topic, metadata=named, **RAW), schema).collect()
    assert [tuple(one) for one in first.h] == headers
    assert (first.user, first.v, first.t, first.p, first.o) == ("k", b"x", topic, 0, 0)
    assert first.at == dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=dt.UTC)
    assert (second.h, second.user, second.v, second.o) == ([], None, None, 1)


def test_a_record_may_be_read_for_its_metadata_alone(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b"\xff not read", key=b"\xff")
    assert collected(source(kafka, topic, metadata={"k": "key", "o": "offset"}), "k binary, o bigint") == [(b"\xff", 0)]


def test_a_message_of_two_megabytes(kafka: KafkaBroker, topic: str) -> None:
    large = b"x" * (2 << 20)
    send(kafka, topic, b"small", large, b"small")
    assert collected(source(kafka, topic, **RAW), "v binary") == [(b"small",), (large,), (b"small",)]


def test_many_records_come_once_and_in_order(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, *(b"%d" % n for n in range(50_000)))
    found = source(kafka, topic, metadata={"o": "offset"}, **RAW)
    rows = collected(found, "v string, o bigint", max_rows_per_epoch=7_001)
    assert rows == [(str(n), n) for n in range(50_000)]


# -- records that cannot be read ------------------------------------------------------------------------------------


def test_a_bad_record_fails_the_job_and_is_named(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b'{"user": "ann"}', b'{"amount": "many"}')
    with pytest.raises(
        hw.SourceError,
        match=rf"Kafka topic {topic} at {kafka.servers} cannot be read: the record at offset 1 of {topic}-0 is no json: "
        r"field 'amount': value 'many' does not fit .*; set bad_records='dead_letters'",
    ):
        collected(source(kafka, topic), ORDER)


def test_bad_records_can_be_put_aside(kafka: KafkaBroker, topic: str) -> None:
    values = [b'{"user": "u%d", "amount": %d}' % (n, n) for n in range(100)]
    for n in (0, 50, 51, 99):
        values[n] = b"bad %d" % n
    send(kafka, topic, *values)
    send(kafka, topic, b'{"amount": 100}', key=b"\xff")
    env = hw.Environment("letters", engine="local")
    good, bad = hw.connectors.memory(), hw.connectors.memory()
    found = source(kafka, topic, bad_records="dead_letters", metadata={"k": "key"})
    orders = env.source(found, f"k string, {ORDER}", name="orders")
    orders.sink(good)
    orders.side_output(hw.DEAD_LETTERS).sink(bad)
    status = env.run(bounded=True).status()
    assert [row.amount for row in good.rows] == [n for n in range(100) if n not in (0, 50, 51, 99)]
    assert [(row.split, row.position, row.value) for row in bad.rows] == [
        *((f"{topic}-0", n, b"bad %d" % n) for n in (0, 50, 51, 99)),
        (f"{topic}-0", 100, b'{"amount": 100}'),
    ]
    assert {row.reason for row in bad.rows} == {"it is not a JSON object", "its key is not UTF-8 text"}
    assert status.steps["orders"]["dead_letters"] == 5


def test_a_null_where_none_may_be_is_a_bad_record(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b'{"amount": 1}', b"{}")
    with pytest.raises(hw.SourceError, match=r"offset 1 of .*'amount' is null, and declared not null"):
        collected(source(kafka, topic), "amount bigint not null")


# -- where to start -------------------------------------------------------------------------------------------------


@two_partitions()
def test_places_to_start(kafka: KafkaBroker, topic: str) -> None:
    for n in range(4):
        send(kafka, topic, b"%d" % n, partition=n % 2, timestamp=1_700_000_000_000 + n)

    def values(start: Any) -> list[str]:
        return sorted(v for (v,) in collected(source(kafka, topic, start=start, **RAW), "v string"))

    assert values("earliest") == ["0", "1", "2", "3"]
    assert values("latest") == []
    assert values({topic: {0: 1, 1: 2}}) == ["2"]
    assert values({topic: {0: 1}}) == ["1", "2", "3"]
    moment = dt.datetime(2023, 11, 14, 22, 13, 20, 2_000, tzinfo=dt.UTC)
    assert values(moment) == ["2", "3"]
    assert values(moment + dt.timedelta(milliseconds=1)) == ["3"]
    assert values(moment + dt.timedelta(days=1)) == []
    with pytest.raises(hw.SourceError, match=f"start= names {topic}-7, which does not exist; leave it out"):
        values({topic: {7: 1}})


def test_latest_reads_what_comes_after_the_start(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b"before")
    with running(source(kafka, topic, start="latest", **RAW)) as (job, rows):
        until(lambda: job.status().epoch >= 0, job)
        send(kafka, topic, b"after")
        until(lambda: bool(rows()), job)
        assert rows() == ["after"]


class running:  # noqa: N801
    """A job over a source of one column `v`, and the values that it has published."""

    def __init__(self, found: Source, **settings: Any) -> None:
        env = hw.Environment("running", engine="local", checkpoint_interval="20 ms", **settings)
        self._sink = hw.connectors.memory()
        env.source(found, "v string").sink(self._sink)
        self._job = env.start()

    def __enter__(self) -> tuple[hw.Job, Callable[[], list[str]]]:
        return self._job, lambda: [row.v for row in self._sink.rows]

    def __exit__(self, *_: object) -> None:
        self._job.stop()


# -- topics and partitions that come --------------------------------------------------------------------------------


def test_new_partitions_are_found(kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "_REFRESH_S", 0.1)
    send(kafka, topic, b"a")
    with running(source(kafka, topic, start="latest", **RAW)) as (job, rows):
        until(lambda: job.status().epoch >= 0, job)
        admin = kafka.admin()
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(20)
        until(lambda: len(admin.list_topics(topic, timeout=10).topics[topic].partitions) == 2, job)
        send(kafka, topic, b"b", partition=1)
        until(lambda: rows() == ["b"], job)
        assert set(job.status().positions["source"]) == {f"{topic}-0", f"{topic}-1"}


def test_topics_of_a_pattern_are_found_when_they_come(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "_REFRESH_S", 0.1)
    stem = f"many-{uuid.uuid4().hex[:8]}"
    for name in (f"{stem}-1", f"{stem}-2", f"not-{stem}-1"):
        kafka.create_topic(name)
        send(kafka, name, name.encode())
    with running(source(kafka, None, pattern=rf"{stem}-\d+", **RAW)) as (job, rows):
        until(lambda: sorted(rows()) == [f"{stem}-1", f"{stem}-2"], job)
        kafka.create_topic(f"{stem}-3")
        send(kafka, f"{stem}-3", b"three")
        until(lambda: "three" in rows(), job)
        assert len(rows()) == 3


def test_several_topics_by_name(kafka: KafkaBroker) -> None:
    names = [f"both-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    for name in names:
        kafka.create_topic(name)
        send(kafka, name, name.encode())
    assert sorted(v for (v,) in collected(source(kafka, names, **RAW), "v string")) == sorted(names)


# -- event time, rates, savepoints, groups: what the engine gives ---------------------------------------------------


@two_partitions()
def test_every_partition_has_a_watermark_of_its_own(kafka: KafkaBroker, topic: str) -> None:
    """Rows of a partition that is behind are not late because another one is ahead."""
    stamps = {0: [10_000, 20_000, 30_000], 1: [1_000, 2_000, 40_000]}
    for partition, times in stamps.items():
        for at in times:
            send(kafka, topic, b"x", partition=partition, timestamp=at)
    found = source(kafka, topic, metadata={"at": "timestamp", "p": "partition"}, **RAW)
    env = hw.Environment("marks", engine="local", max_rows_per_epoch=2)
    events = env.source(found, "v string, at timestamp, p int", hw.Watermarks.monotonous("at"))
    counted = events.key_by("v").window(hw.tumbling("10 s")).agg(n=hw.count())
    assert sum(row.n for row in counted.collect()) == 6


@two_partitions()
def test_a_partition_without_records_is_idle_after_a_while(kafka: KafkaBroker, topic: str) -> None:
    for at in (1_000, 20_000):
        send(kafka, topic, b"x", timestamp=at)
    found = source(kafka, topic, metadata={"at": "timestamp"}, **RAW)
    env = hw.Environment("idle", engine="local", checkpoint_interval="20 ms")
    sink = hw.connectors.memory()
    events = env.source(found, "v string, at timestamp", hw.Watermarks.monotonous("at").with_idleness("200 ms"))
    events.key_by("v").window(hw.tumbling("10 s")).agg(n=hw.count()).sink(sink)
    job = env.start()
    try:
        until(lambda: len(sink.rows) == 1, job)
    finally:
        job.stop()


def test_rows_of_an_epoch_are_limited(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, *(b"%d" % n for n in range(10)))
    env = hw.Environment("limited", engine="local", max_rows_per_epoch=3)
    sink = hw.connectors.memory()
    env.source(source(kafka, topic, **RAW), "v string").sink(sink)
    ends: list[int] = []
    job = env.start(bounded=True, on_step=lambda step, _: ends.append(len(sink.rows)) if step == PUBLISHED else None)
    job.wait()
    assert ends == [3, 6, 9, 10]


PUBLISHED = hw.EpochStep.PUBLISHED


def test_a_job_goes_on_from_a_savepoint_where_it_was(kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    send(kafka, topic, *(b"%d" % n for n in range(5)))
    found = source(kafka, topic, **RAW)
    env = hw.Environment("saved", engine="local", checkpoint_interval="20 ms")
    sink = hw.connectors.memory()
    env.source(found, "v string").sink(sink)
    job = env.start()
    until(lambda: len(sink.rows) == 5, job)
    job.savepoint(tmp_path / "savepoint")
    job.stop()
    send(kafka, topic, *(b"%d" % n for n in range(5, 8)))
    env = hw.Environment("saved", engine="local")
    sink = hw.connectors.memory()
    env.source(source(kafka, topic, start="latest", **RAW), "v string").sink(sink)
    env.run(from_=tmp_path / "savepoint", bounded=True)
    assert [row.v for row in sink.rows] == ["5", "6", "7"]


@two_partitions()
def test_a_consumer_group_shows_what_is_published(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b"a", b"b")
    group = f"group-{uuid.uuid4().hex[:8]}"
    collected(source(kafka, topic, group=group, **RAW), "v string")
    assert committed(kafka, group, topic) == [2, 0]
    collected(source(kafka, topic, **RAW), "v string")
    assert committed(kafka, "headwater", topic) == [None, None]


def committed(broker: KafkaBroker, group: str, topic: str) -> list[int | None]:
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": group, "log_level": 0})
    try:
        found = consumer.committed([TopicPartition(topic, p) for p in range(2)], timeout=20)
        return [None if one.offset < 0 else one.offset for one in found]
    finally:
        consumer.close()


# -- ranges ---------------------------------------------------------------------------------------------------------


def read(found: Source, topic: str, start: int, end: int) -> list[Any]:
    return [row["o"] for batch in found.read(f"{topic}-0", start, end) for row in batch.to_pylist()]  # type: ignore[union-attr]


@pytest.fixture
def placed(kafka: KafkaBroker, topic: str) -> Iterable[Source]:
    found = source(kafka, topic, metadata=PLACE, **RAW)
    found.check(hw.Schema.of(PLACED))
    yield found
    found.release(f"{topic}-0")


def test_a_range_read_again_gives_the_same(kafka: KafkaBroker, topic: str, placed: Source) -> None:
    send(kafka, topic, *(b"%d" % n for n in range(100)))
    assert read(placed, topic, 0, 10) == list(range(10))
    assert read(placed, topic, 10, 40) == list(range(10, 40))
    assert read(placed, topic, 10, 40) == list(range(10, 40))
    assert read(placed, topic, 90, 100) == list(range(90, 100))
    half = placed.read(f"{topic}-0", 0, 100)
    next(half)
    half.close()  # type: ignore[attr-defined]
    assert read(placed, topic, 0, 5) == list(range(5))
    again = pickle.loads(pickle.dumps(placed))
    assert read(again, topic, 3, 6) == [3, 4, 5]
    again.release(f"{topic}-0")


def test_a_range_that_failed_is_read_from_its_start_again(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, b'{"n": 0}', b'{"n": 1}', b"bad", b'{"n": 3}')
    found = source(kafka, topic, metadata={"o": "offset"})
    found.check(hw.Schema.of("n bigint, o bigint"))
    for _ in range(2):
        with pytest.raises(hw.SourceError, match=f"offset 2 of {topic}-0 is no json"):
            read(found, topic, 0, 4)
    assert read(found, topic, 0, 2) == [0, 1]
    assert read(found, topic, 3, 4) == [3]
    found.release(f"{topic}-0")


def transaction(broker: KafkaBroker, topic: str, *values: bytes, commits: bool) -> None:
    producer = Producer({"bootstrap.servers": broker.servers, "transactional.id": uuid.uuid4().hex, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush(20)
    if commits:
        producer.commit_transaction(20)
    else:
        producer.abort_transaction(20)
    wait_for_marks(broker, topic)


def wait_for_marks(broker: KafkaBroker, topic: str) -> None:
    """Kafka writes the mark of a transaction a moment after it has said yes; the test's timeout ends a wait for nothing."""
    admin, at = broker.admin(), TopicPartition(topic, 0)

    def end(isolation: IsolationLevel) -> int:
        (answer,) = admin.list_offsets({at: OffsetSpec.latest()}, isolation_level=isolation).values()
        return int(answer.result(20).offset)

    while end(IsolationLevel.READ_COMMITTED) != end(IsolationLevel.READ_UNCOMMITTED):
        pass


def test_only_committed_transactions_are_read_and_their_marks_keep_nobody_waiting(
    kafka: KafkaBroker, topic: str, placed: Source
) -> None:
    transaction(kafka, topic, b"a", b"b", commits=True)  # offsets 0 and 1, its mark 2
    transaction(kafka, topic, b"c", b"d", commits=False)  # 3 and 4, its mark 5
    assert placed.latest({}, 0) == {f"{topic}-0": 6}
    assert read(placed, topic, 0, 6) == [0, 1]
    assert read(placed, topic, 2, 6) == []
    assert [read(placed, topic, n, n + 1) for n in range(6)] == [[0], [1], [], [], [], []]
    transaction(kafka, topic, b"e", commits=True)
    assert read(placed, topic, 6, 8) == [6]
    assert [v for (v,) in collected(source(kafka, topic, **RAW), "v string", max_rows_per_epoch=2)] == ["a", "b", "e"]


def test_an_open_transaction_is_not_read(kafka: KafkaBroker, topic: str, placed: Source) -> None:
    send(kafka, topic, b"a")
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": uuid.uuid4().hex, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"b", partition=0)
    producer.flush(20)
    send(kafka, topic, b"c")
    assert placed.latest({}, 0) == {f"{topic}-0": 1}
    producer.commit_transaction(20)
    wait_for_marks(kafka, topic)
    assert placed.latest({}, 0) == {f"{topic}-0": 4}
    assert read(placed, topic, 0, 4) == [0, 1, 2]


# -- what goes wrong ------------------------------------------------------------------------------------------------


def test_records_that_expired_unread_are_told_or_skipped(kafka: KafkaBroker, topic: str, placed: Source) -> None:
    send(kafka, topic, *(b"%d" % n for n in range(10)))
    admin = kafka.admin()
    for done in admin.delete_records([TopicPartition(topic, 0, 4)]).values():
        done.result(20)
    told = f"offset 2 of {topic}-0 has expired, the first one that is left is 4; set on_lost='skip'"
    with pytest.raises(hw.SourceError, match=told):
        placed.latest({f"{topic}-0": 2}, 0)
    with pytest.raises(hw.SourceError, match=told):
        read(placed, topic, 2, 10)
    skipping = source(kafka, topic, metadata=PLACE, on_lost="skip", **RAW)
    skipping.check(hw.Schema.of(PLACED))
    assert skipping.latest({f"{topic}-0": 2}, 0) == {f"{topic}-0": 10}
    assert read(skipping, topic, 2, 10) == [4, 5, 6, 7, 8, 9]
    skipping.release(f"{topic}-0")
    assert len(collected(source(kafka, topic, **RAW), "v string")) == 6


def test_a_topic_that_does_not_exist_is_told_at_the_start(kafka: KafkaBroker) -> None:
    with pytest.raises(hw.SourceError, match=r"Kafka topic nothing at .*: topic nothing does not exist; make it"):
        collected(source(kafka, "nothing"), ORDER)
    with pytest.raises(hw.SourceError, match=r"Kafka topics like none-\.\* at .*: no topic matches the pattern"):
        collected(source(kafka, None, pattern="none-.*"), ORDER)


def test_a_topic_that_is_deleted_is_told(kafka: KafkaBroker, topic: str, placed: Source) -> None:
    send(kafka, topic, b"a", b"b")
    assert read(placed, topic, 0, 1) == [0]
    assert placed.latest({f"{topic}-0": 1}, 0) == {f"{topic}-0": 2}
    kafka.delete_topic(topic)
    with pytest.raises(hw.SourceError, match=f"topic {topic} does not exist any more; make it again"):
        placed.latest({f"{topic}-0": 1}, 0)
    with pytest.raises(hw.SourceError, match=f"topic {topic} does not exist any more; make it again"):
        read(placed, topic, 2, 3)


def test_a_topic_that_is_made_again_is_noticed(
    kafka: KafkaBroker, topic: str, placed: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_source, "_REFRESH_S", 0.0)
    send(kafka, topic, b"a", b"b")
    assert placed.latest({f"{topic}-0": 2}, 0) == {f"{topic}-0": 2}
    kafka.delete_topic(topic)
    kafka.create_topic(topic)
    send(kafka, topic, b"c")
    with pytest.raises(hw.SourceError, match=f"topic {topic} was deleted and made again while it was read"):
        placed.latest({f"{topic}-0": 2}, 0)
    fresh = pickle.loads(pickle.dumps(placed))
    with pytest.raises(hw.SourceError, match=f"has read {topic}-0 up to offset 2, and it ends at 1: the topic was"):
        fresh.latest({f"{topic}-0": 2}, 0)
    with pytest.raises(hw.SourceError, match=f"has read {topic}-0 up to offset 2, and it ends at 1: the topic was"):
        read(fresh, topic, 2, 3)
    fresh.release(f"{topic}-0")


def test_servers_that_are_not_there_are_told_within_the_limit() -> None:
    started = time.monotonic()
    with pytest.raises(hw.SourceError, match=r"no answer within 1 s: .*refused.*; see that the servers run"):
        collected(hw.connectors.kafka("orders", "127.0.0.1:1", timeout="1 s"), ORDER)
    assert time.monotonic() - started < 30


def test_a_broker_that_goes_away_fails_the_job_and_it_runs_when_it_is_back(kafka: KafkaBroker, topic: str) -> None:
    send(kafka, topic, *(b"%d" % n for n in range(6)))
    found = source(kafka, topic, timeout="2 s", **RAW)

    def stop_after_one(step: hw.EpochStep, epoch: int) -> None:
        if step == PUBLISHED and epoch == 0:
            kafka.stop()

    env = hw.Environment("gone", engine="local", max_rows_per_epoch=2)
    sink = hw.connectors.memory()
    env.source(found, "v string").sink(sink)
    try:
        with pytest.raises(hw.SourceError, match="no answer within 2 s"):
            env.run(bounded=True, on_step=stop_after_one)
    finally:
        kafka.start()
    assert [row.v for row in sink.rows] == ["0", "1"]
    assert [v for (v,) in collected(source(kafka, topic, **RAW), "v string")] == [str(n) for n in range(6)]


def test_passwords_come_from_the_environment_and_are_never_shown(
    kafka: KafkaBroker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(kafka, topic, b"a")
    found = hw.connectors.kafka(topic, kafka.sasl_servers, options=login("env:KAFKA_PASSWORD"), timeout="10 s", **RAW)
    with pytest.raises(hw.SourceError, match="KAFKA_PASSWORD is not in the environment of this process; set it"):
        collected(found, "v string")
    monkeypatch.setenv("KAFKA_PASSWORD", kafka.password)
    assert collected(found, "v string") == [("a",)]
    assert kafka.password.encode() not in pickle.dumps(found)
    written = hw.connectors.kafka(topic, kafka.sasl_servers, options=login(kafka.password), **RAW)
    env = hw.Environment("secrets", engine="local")
    env.source(written, "v string").sink(hw.connectors.memory())
    shown = [repr(written), repr(vars(written)), written.describe(), env.describe(), env.explain()]
    assert not [text for text in shown if kafka.password in text]


def test_a_wrong_password_is_told_at_once_and_not_shown(kafka: KafkaBroker, topic: str) -> None:
    found = hw.connectors.kafka(topic, kafka.sasl_servers, options=login("hunter2"), timeout="60 s", **RAW)
    started = time.monotonic()
    with pytest.raises(hw.SourceError, match=r"Authentication failed.*; see that the servers run and let") as failed:
        collected(found, "v string")
    assert time.monotonic() - started < 30
    assert "hunter2" not in str(failed.value)


def test_a_wrong_option_is_told_without_its_value(kafka: KafkaBroker) -> None:
    found = source(kafka, "orders", options={"sasl.passwrd": "hunter2"})
    with pytest.raises(hw.SourceError, match=r"an option is wrong: No such configuration property.*mend options="):
        collected(found, ORDER)
    found = source(kafka, "orders", options={"security.protocol": "hunter2"})
    with pytest.raises(hw.SourceError, match=r"an option is wrong: Invalid value") as failed:
        collected(found, ORDER)
    assert "hunter2" not in str(failed.value)


# -- on Spark -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@two_partitions()
def test_a_job_on_spark(spark: Any, kafka: KafkaBroker, topic: str, tmp_path: Path) -> None:
    for n in range(100):
        send(kafka, topic, b'{"user": "u%d", "amount": %d}' % (n % 3, n), partition=n % 2)

    def orders() -> hw.Environment:
        env = hw.Environment("orders", job_dir=tmp_path / "job", max_rows_per_epoch=30, spark=spark)
        found = source(kafka, topic, group="on-spark", metadata={"o": "offset"})
        rows = env.source(found, f"{ORDER}, o bigint", name="orders")
        rows.sink(hw.connectors.files(tmp_path / "out", format="json"))
        return env

    def run_to(first: int, second: int) -> None:
        job = orders().start()
        try:
            until(lambda: committed(kafka, "on-spark", topic) == [first, second], job)
        finally:
            job.stop()

    run_to(50, 50)
    send(kafka, topic, b'{"user": "late", "amount": 100}')
    run_to(51, 50)
    for n in range(101, 151):
        send(kafka, topic, b'{"user": "more", "amount": %d}' % n, partition=1)
    positions = {f"{topic}-0": 51, f"{topic}-1": 50}
    assert source(kafka, topic).rows_after(positions) == 50
    for _ in range(2):  # the second time there is nothing new
        assert orders().run(available_now=True).status().state == "stopped"
        assert committed(kafka, "on-spark", topic) == [51, 100]
    lines = [json.loads(line) for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_text().splitlines()]
    assert sorted(line["amount"] for line in lines) == list(range(151))
