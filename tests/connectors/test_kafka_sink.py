"""Epochs sent to a real Kafka broker: once each for those who read what is committed, whatever dies in between."""

from __future__ import annotations

import datetime as dt
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.connectors.published import Published
from tests.parts.kafka import KafkaBroker, login
from tests.parts.topics import messages
from tests.parts.waiting import until

import headwater as hw
from headwater.connectors.kafka.sink import KafkaSink
from headwater.testing.conformance import check_sink

NUMBERS = "n long"
CHANGES = "id long, name string, row_kind string"


@pytest.fixture
def made(kafka: KafkaBroker, topic: str, tmp_path: Path) -> Iterator[Callable[..., Published]]:
    """Makes sinks for the topic; they are closed at the end. Each job has a folder of its own."""
    sinks: list[KafkaSink] = []

    def make(schema: str = NUMBERS, *, folder: str = "job", **settings: Any) -> Published:
        (tmp_path / folder).mkdir(exist_ok=True)
        settings = {"topic": topic, "servers": kafka.servers, "timeout": "30 s", **settings}
        sinks.append(hw.connectors.kafka_sink(**settings))
        return Published(sinks[-1], schema, tmp_path / folder)

    yield make
    for sink in sinks:
        sink.close()


def values(kafka: KafkaBroker, topic: str) -> list[Any]:
    return [message.value() and json.loads(message.value()) for message in messages(kafka.servers, topic)]


def numbers(kafka: KafkaBroker, topic: str) -> list[int]:
    return [value["n"] for value in values(kafka, topic)]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_it_keeps_the_contract(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], tmp_path: Path, delivery: str
) -> None:
    options = login(kafka.password)
    check_sink(
        lambda: made(servers=kafka.sasl_servers, options=options, delivery=delivery).sink,
        "n long, name string",
        [(n, None if n == 2 else f"name {n}") for n in range(9)],
        lambda: [tuple(value.values()) for value in values(kafka, topic)],
        tmp_path,
        secrets=[kafka.password],
    )


# -- once -----------------------------------------------------------------------------------------------------------


def test_a_job_sends_its_rows(kafka: KafkaBroker, topic: str) -> None:
    env = hw.Environment("orders", engine="local", max_rows_per_epoch=2)
    orders = env.from_rows([("ann", 1.5), ("bob", None), ("é", 3.0)], "user string, amount double")
    orders.sink(hw.connectors.kafka_sink(topic, kafka.servers, key="user"), name="orders")
    assert [str(path.guarantee) for path in env.guarantees()] == ["exactly-once"]
    env.run()
    found = [(m.key(), m.value().decode()) for m in messages(kafka.servers, topic)]
    assert found == [
        (b"ann", '{"user": "ann", "amount": 1.5}'),
        (b"bob", '{"user": "bob", "amount": null}'),
        ("é".encode(), '{"user": "é", "amount": 3.0}'),
    ]


def test_an_epoch_that_is_published_again_changes_nothing(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    out = made().open()
    out.publish(0, [(1,), (2,)], [(3,)])
    out.publish(0, [(1,), (2,)], [(3,)])
    out.publish(1)
    out.publish(2, [(4,)])
    again = made().open()
    again.publish(2, [(4,)])
    again.publish(3, [(5,)])
    assert numbers(kafka, topic) == [1, 2, 3, 4, 5]


DYING = """
import os, sys
from pathlib import Path
import headwater as hw
from headwater.connectors.kafka.sending import EpochSender
from tests.connectors.test_kafka_sink import NUMBERS, Published

servers, topic, folder, when = sys.argv[1:]
out = Published(hw.connectors.kafka_sink(topic, servers), NUMBERS, Path(folder)).open()
out.publish(0, [(0,)])
commit = EpochSender._commit

def die(self, marker, deadline):
    if when == "after":
        commit(self, marker, deadline)
    else:
        self._producer.flush(20)
    os._exit(7)

EpochSender._commit = die
out.publish(1, [(1,), (2,)])
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_around_the_commit(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], tmp_path: Path, when: str
) -> None:
    out = made()  # its folder is that of the process
    command = [sys.executable, "-c", DYING, kafka.servers, topic, str(tmp_path / "job"), when]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(hw.__file__).parents[1]), str(Path.cwd())])}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 7, done.stderr
    out.open()
    assert numbers(kafka, topic) == ([0] if when == "before" else [0, 1, 2])
    out.publish(1, [(1,), (2,)])
    out.publish(2, [(3,)])
    assert numbers(kafka, topic) == [0, 1, 2, 3]
    sent = [json.loads(m.value())["n"] for m in messages(kafka.servers, topic, "read_uncommitted")]
    assert sent == ([0, 1, 2, 1, 2, 3] if when == "before" else [0, 1, 2, 3])


def test_a_zombie_is_fenced(kafka: KafkaBroker, topic: str, made: Callable[..., Published]) -> None:
    zombie = made().open()
    zombie.publish(0, [(1,)])
    run = made().open()
    with pytest.raises(hw.PublishError, match=r"epoch 1: Kafka topic .*another run of this job has taken over"):
        zombie.publish(1, [(2,)])
    run.publish(1, [(2,)])
    assert numbers(kafka, topic) == [1, 2]


def test_a_broker_is_restarted_during_a_run(kafka: KafkaBroker, topic: str) -> None:
    env = hw.Environment("restarted", engine="local", max_rows_per_epoch=10)
    env.from_rows([(n,) for n in range(60)], NUMBERS).sink(hw.connectors.kafka_sink(topic, kafka.servers), name="out")

    def restart(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == (hw.EpochStep.STAGED, 2):
            kafka.stop()
        if (step, epoch) == (hw.EpochStep.COMMITTED, 2):
            starting.start()

    starting = threading.Thread(target=kafka.start)
    try:
        env.run(on_step=restart)
    finally:
        starting.join()
    assert numbers(kafka, topic) == list(range(60))


def test_a_broker_that_is_killed_while_a_job_sends(kafka: KafkaBroker, topic: str) -> None:
    env = hw.Environment("killed", engine="local", max_rows_per_epoch=500, restart=hw.restart.fixed(3, delay="1 s"))
    env.from_rows([(n,) for n in range(10_000)], NUMBERS).sink(
        hw.connectors.kafka_sink(topic, kafka.servers), name="out"
    )
    job = env.start(bounded=True)
    until(lambda: job.status().published >= 2, job)
    kafka.kill()
    kafka.start()
    job.wait()
    assert numbers(kafka, topic) == list(range(10_000))


def test_a_marker_that_the_cluster_has_forgotten_is_asked_for_only_in_doubt(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], tmp_path: Path
) -> None:
    """Deleting the group is what the broker does when its offsets have expired."""
    out = made().open()
    out.publish(0, [(1,)])
    out.sink.close()
    admin = kafka.admin()
    admin.delete_consumer_groups(["headwater-out-a"])["headwater-out-a"].result(20)
    again = made().open()
    told = (
        r"epoch 0 was being sent .*does not know any more .*group headwater-out-a has expired .*remove .*sent-out.json;"
    )
    with pytest.raises(hw.PublishError, match=told):
        again.publish(0, [(1,)])
    again.publish(1, [(2,)])  # what comes after an epoch is given only if that one is known to be published
    assert numbers(kafka, topic) == [1, 2]


def test_rows_can_be_sent_at_least_once(kafka: KafkaBroker, topic: str, made: Callable[..., Published]) -> None:
    out = made(delivery="at_least_once").open()
    assert out.sink.guarantee is hw.Guarantee.AT_LEAST_ONCE
    out.publish(0, [(1,), (2,)])
    out.publish(0, [(1,), (2,)])
    made(delivery="at_least_once").open("b", after=("a", 0)).publish(1, [(3,)])
    assert numbers(kafka, topic) == [1, 2, 1, 2, 3]


# -- savepoints -----------------------------------------------------------------------------------------------------


def test_output_goes_on_under_a_job_that_goes_on_from_a_savepoint(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    old = made(folder="a").open("a")
    old.publish(0, [(1,)])
    new = made(folder="b").open("b", after=("a", 0))
    with pytest.raises(hw.PublishError, match="another run of this job has taken over"):
        old.publish(1, [(2,)])
    with pytest.raises(hw.PublishError, match="was handed over to job b, which goes on from the savepoint of epoch 0"):
        made(folder="a").open("a")
    new.publish(1, [(20,)])
    new.open("b", after=("a", 0)).publish(1, [(20,)])
    made(folder="c").open("c", after=("b", 1)).publish(2, [(30,)])
    assert numbers(kafka, topic) == [1, 20, 30]


def test_output_from_after_the_savepoint_is_refused(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    old = made(folder="a").open("a")
    old.publish(0, [(1,)])
    old.publish(1, [(2,)])
    with pytest.raises(
        hw.PublishError, match=r"output from after the savepoint, which is of epoch 0 \(it has epoch 1 of job a"
    ):
        made(folder="b").open("b", after=("a", 0))
    old.publish(2, [(3,)])  # a start that was refused does not end it
    assert numbers(kafka, topic) == [1, 2, 3]


def test_savepoint_can_be_started_from_again_until_a_job_has_published(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    failed = made(folder="b").open("b", after=("a", 4))
    second = made(folder="c").open("c", after=("a", 4))
    with pytest.raises(hw.PublishError, match="another run of this job has taken over"):
        failed.publish(5, [(1,)])
    with pytest.raises(hw.PublishError, match=r"holds the output of another run .sink 'out' of job c, this one is b"):
        made(folder="b").open("b")
    second.publish(5, [(2,)])
    with pytest.raises(hw.PublishError, match=r"output from after the savepoint, .*it has epoch 5 of job c"):
        made(folder="d").open("d", after=("a", 4))
    assert numbers(kafka, topic) == [2]


# -- records --------------------------------------------------------------------------------------------------------


def test_rows_of_a_key_are_in_one_partition_and_in_order(
    kafka: KafkaBroker, topic: str, tmp_path: Path, made: Callable[..., Published]
) -> None:
    kafka.create_topic(f"{topic}-wide", partitions=4)
    out = made("key string, n long", topic=f"{topic}-wide", key="key").open()
    for epoch in range(3):
        files = [[(f"k{n % 10}", 1000 * epoch + 100 * file + n) for n in range(100)] for file in range(3)]
        out.publish(epoch, *files)
    places: dict[bytes, set[int]] = {}
    order: dict[bytes, list[int]] = {}
    for message in messages(kafka.servers, f"{topic}-wide"):
        places.setdefault(message.key(), set()).add(message.partition())
        order.setdefault(message.key(), []).append(json.loads(message.value())["n"])
    assert [len(found) for found in places.values()] == [1] * 10
    assert len(set.union(*places.values())) > 1
    assert all(found == sorted(found) and len(found) == 90 for found in order.values())


@pytest.mark.parametrize(
    ("dtype", "keys"),
    [
        ("string", {"é": "é".encode(), "": b"", None: None}),
        ("binary", {b"\x00\xff": b"\x00\xff"}),
        ("long", {-7: b"-7"}),
        ("boolean", {True: b"true"}),
        ("decimal(5,2)", {Decimal("1.50"): b"1.50"}),
        ("date", {dt.date(2026, 1, 1): b"2026-01-01"}),
        ("timestamp", {dt.datetime(2026, 1, 1, tzinfo=dt.UTC): b"2026-01-01T00:00:00+00:00"}),
    ],
)
def test_keys_of_one_column(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], dtype: str, keys: dict[Any, bytes | None]
) -> None:
    made(f"k {dtype}", key="k").open().publish(0, [(value,) for value in keys])
    assert [message.key() for message in messages(kafka.servers, topic)] == list(keys.values())


def test_keys_of_several_columns_are_json(kafka: KafkaBroker, topic: str, made: Callable[..., Published]) -> None:
    made("a long, b string, c long", key=["b", "a"]).open().publish(0, [(1, "x", 2), (1, None, 2)])
    keys = [message.key() for message in messages(kafka.servers, topic)]
    assert keys == [b'{"b": "x", "a": 1}', b'{"b": null, "a": 1}']


def test_headers_and_partitions_come_from_columns_or_a_function(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    kafka.create_topic(f"{topic}-wide", partitions=3)
    settings: dict[str, Any] = {"topic": f"{topic}-wide", "headers": {"trace": "id", "size": "n"}}
    made("id string, n int", partition="n", **settings).open().publish(0, [("a", 2), (None, 1)])
    by_row = made("id string, n int", partition=lambda row: row.n % 3, **settings).open("b")
    by_row.publish(0, [("b", 3), ("c", 5)])
    found = [(m.partition(), m.headers()) for m in messages(kafka.servers, f"{topic}-wide")]
    assert found == [
        (0, [("trace", b"b"), ("size", b"3")]),
        (1, [("trace", None), ("size", b"1")]),
        (2, [("trace", b"a"), ("size", b"2")]),
        (2, [("trace", b"c"), ("size", b"5")]),
    ]
    with pytest.raises(hw.RowError, match=r"partition.*the topic has 3, of which the last is 2"):
        by_row.sink._sender and made("id string, n int", partition="n", **settings).open("c").publish(0, [("x", 9)])


def test_a_changelog_gives_values_and_tombstones(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    out = made(CHANGES, mode="upsert", key="id").open()
    out.publish(0, [(1, "a", "+I"), (2, "b", "+I")])
    out.publish(1, [(1, "a", "-U"), (1, "A", "+U")], [(2, "b", "-D"), (3, "c", "-U"), (4, "c", "+U")])
    found = [(m.key(), m.value() and json.loads(m.value())) for m in messages(kafka.servers, topic)]
    assert found == [
        (b"1", {"id": 1, "name": "a"}),
        (b"2", {"id": 2, "name": "b"}),
        (b"1", {"id": 1, "name": "A"}),
        (b"2", None),
        (b"3", None),  # the other half of the change has another key
        (b"4", {"id": 4, "name": "c"}),
    ]


def test_values_in_other_formats(kafka: KafkaBroker, topic: str, made: Callable[..., Published]) -> None:
    made("a string, b long, c timestamp", format="csv").open("csv").publish(
        0, [('x"y,\n', 1, dt.datetime(2026, 1, 1, tzinfo=dt.UTC)), (None, None, None), ("", 2, None)]
    )
    made("k long, v string", format="raw", key="k").open("raw").publish(0, [(1, "as it is"), (2, None)])
    fields = [{"name": "n", "type": "long"}, {"name": "s", "type": ["null", "string"]}]
    avro = hw.connectors.avro({"type": "record", "name": "row", "fields": fields})
    made("n long, s string", format=avro).open("avro").publish(0, [(1, "x")])
    assert [message.value() for message in messages(kafka.servers, topic)] == [
        b'"x""y,\n",1,2026-01-01 00:00:00.000000Z',
        b",,",
        b'"",2,',
        b"as it is",
        None,
        b"\x02\x02\x02x",
    ]


def test_what_is_written_is_read_again(kafka: KafkaBroker, topic: str, made: Callable[..., Published]) -> None:
    schema = (
        "n long, at timestamp, day date, price decimal(5,2), tags array<string>, raw binary, place struct<x:double>"
    )
    moment = dt.datetime(2026, 1, 1, 12, 30, 0, 5, tzinfo=dt.UTC)
    row = (1, moment, moment.date(), Decimal("1.50"), ["a", None], b"\xff", {"x": 1.5})
    made(schema).open().publish(0, [row, (None,) * 7])
    env = hw.Environment("again", engine="local")
    read = env.source(hw.connectors.kafka(topic, kafka.servers), schema).collect()
    assert [tuple(found) for found in read] == [(*row[:-1], (1.5,)), (None,) * 7]


# -- what is refused ------------------------------------------------------------------------------------------------


def test_a_record_that_is_too_large_is_told_before_the_commit_and_can_be_allowed(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], tmp_path: Path
) -> None:
    row = ("big", "x" * 2_000_000)
    refused = r"step 'out': the record with key b'big' has \d{7} bytes .*, more than this client's limit of 1000000; raise both"
    small = made("k string, v string", key="k").open()
    with pytest.raises(hw.RowError, match=refused):
        staged_as_in_a_task(small, tmp_path, ("a", "fits"), row)
    kafka.create_topic(f"{topic}-small", max_message_bytes=500_000)
    larger: dict[str, Any] = {"key": "k", "options": {"message.max.bytes": 4_000_000}}
    large = made("k string, v string", topic=f"{topic}-small", **larger).open()
    with pytest.raises(
        hw.RowError, match=refused.replace("this client's limit of 1000000", "the topic's limit of 499939")
    ):
        staged_as_in_a_task(large, tmp_path, ("a", "fits"), row)
    made("k string, v string", **larger).open().publish(0, [row])
    assert values(kafka, f"{topic}-small") == []
    assert [len(value["v"]) for value in values(kafka, topic)] == [2_000_000]


@pytest.mark.parametrize("headers", [{}, {"headers": {"h": "k", "né": "n"}}], ids=["plain", "headers"])
def test_what_is_staged_the_client_and_the_topic_take(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], tmp_path: Path, headers: dict[str, Any]
) -> None:
    kafka.create_topic(f"{topic}-small", max_message_bytes=10_000)
    settings: dict[str, Any] = {"topic": f"{topic}-small", "key": "k", "format": "csv", **headers}
    out = made("k string, n bigint, v string", **settings).open()
    sizes = []
    for size in range(9_800, 10_001):
        try:
            staged_as_in_a_task(out, tmp_path, ("k", 7, "x" * size))
            sizes.append(size)
        except hw.RowError:
            break
    assert sizes
    assert sizes[-1] > 9_850
    out.publish(0, [("k", 7, "x" * sizes[-1])], [("k", 7, "x" * 100)] * 500)
    assert sum(1 for _ in messages(kafka.servers, f"{topic}-small")) == 501


def staged_as_in_a_task(out: Published, folder: Path, *rows: Any) -> None:
    """What a task does, which has a copy of the sink."""
    columns = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, out.schema.arrow, strict=True)]
    pickle.loads(pickle.dumps(out.sink)).stage(pa.table(arrays, schema=out.schema.arrow), folder / "staged.arrow")


def test_an_epoch_that_was_refused_is_sent_when_the_cause_is_mended(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published]
) -> None:
    out = made("v string").open()
    out.sink._limits = None  # the topic was changed since the job was started
    with pytest.raises(hw.PublishError, match="a record without key has"):
        out.publish(0, [("a",), ("x" * 2_000_000,)])
    out.publish(0, [("a",), ("b",)])
    assert [value["v"] for value in values(kafka, topic)] == ["a", "b"]


def test_an_unknown_topic_is_told_at_the_start(made: Callable[..., Published]) -> None:
    with pytest.raises(
        hw.PublishError, match=r"sink 'out': Kafka topic gone at .* cannot be written: the topic does not exist"
    ):
        made(topic="gone").open()
    with pytest.raises(hw.PublishError, match="the topic does not exist"):
        made(topic="gone").open("b", after=("a", 0))


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_a_broker_that_is_not_there_is_told(made: Callable[..., Published], delivery: str) -> None:
    out = made(servers="127.0.0.1:1", timeout="2 s", delivery=delivery)
    with pytest.raises(hw.PublishError, match=r"at 127.0.0.1:1 cannot be written: no answer within 2 s: .*refused"):
        out.open()


@pytest.mark.parametrize(
    "delivery",
    ["exactly_once", pytest.param("at_least_once", marks=pytest.mark.long)],  # the same wait, in the same place
)
def test_a_broker_that_goes_away_is_waited_for_within_limits(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], delivery: str
) -> None:
    out = made(delivery=delivery, timeout="3 s").open()
    kafka.stop()
    try:
        with pytest.raises(
            hw.PublishError, match=r"could not publish epoch 0: .*no answer within 3 s: .*nothing is lost"
        ):
            out.publish(0, [(1,)])
        with pytest.raises(hw.PublishError, match=r"cannot be written: no answer within 3 s"):
            out.open()
    finally:
        kafka.start()
    out.open().publish(0, [(1,)])
    assert set(numbers(kafka, topic)) == {1}


def test_a_wrong_password_is_told_and_not_shown(kafka: KafkaBroker, made: Callable[..., Published]) -> None:
    out = made(servers=kafka.sasl_servers, options=login("hunter2"))
    with pytest.raises(hw.PublishError, match="uthentication failed") as refused:
        out.open()
    assert "hunter2" not in str(refused.value)


def test_secrets_come_from_the_environment_and_are_neither_shown_nor_sent_to_tasks(
    kafka: KafkaBroker, topic: str, made: Callable[..., Published], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made(servers=kafka.sasl_servers, options=login("env:KAFKA_PASSWORD"))
    monkeypatch.setenv("KAFKA_PASSWORD", kafka.password)
    out.open().publish(0, [(1,)])
    given = made(servers=kafka.sasl_servers, options=login(kafka.password)).sink
    assert given.describe() == f"Kafka topic {topic} at {kafka.sasl_servers}, exactly-once"
    assert not [shown for shown in (repr(given), given.describe()) if kafka.password in shown]
    assert kafka.password.encode() not in pickle.dumps(given)
    assert numbers(kafka, topic) == [1]


def test_a_timeout_that_the_cluster_does_not_allow_is_told(made: Callable[..., Published]) -> None:
    with pytest.raises(hw.PublishError, match=r"timeout= is longer than the cluster's transaction.max.timeout.ms"):
        made(timeout="2 h").open()


@pytest.mark.parametrize(
    ("schema", "settings", "problem"),
    [
        (NUMBERS, {"key": "m"}, "there is no field 'm'; the fields are n"),
        (NUMBERS, {"headers": {"h": "m"}}, "there is no field 'm'; the fields are n"),
        ("k array<int>", {"key": "k"}, "cannot write column 'k' as a key or header; got 'array<int>'"),
        ("k string", {"partition": "k"}, "takes partitions from a column of whole numbers; got 'k string'"),
        ("k array<int>", {"format": "csv"}, "cannot write column 'k' as CSV; got 'array<int>'"),
        ("a string, b string", {"format": "raw"}, "with format='raw' writes one column"),
    ],
)
def test_rows_that_cannot_be_records_are_refused_at_the_start(
    made: Callable[..., Published], schema: str, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(hw.HeadwaterError, match=f"step 'out'.*{problem}"):
        made(schema, **settings).open()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"servers": ""}, "needs servers"),
        ({"mode": "replace"}, "needs mode= append or upsert; got 'replace'"),
        ({"delivery": "twice"}, "needs delivery= exactly_once or at_least_once; got 'twice'"),
        ({"mode": "upsert"}, "needs a key to upsert by"),
        ({"format": "xml"}, "got 'xml'"),
        ({"options": {"transactional.id": "x"}}, "sets option 'transactional.id' itself; .*delivery="),
    ],
)
def test_bad_arguments_are_refused_when_the_graph_is_built(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(hw.GraphError, match=problem):
        hw.connectors.kafka_sink(**{"topic": "t", "servers": "h:9092", **settings})


@pytest.mark.parametrize(
    ("schema", "settings", "row", "problem"),
    [
        (CHANGES, {"mode": "upsert", "key": "id"}, (None, "x", "+I"), "a key to upsert by must not be null"),
        (CHANGES, {"mode": "upsert", "key": "id"}, (1, "x", "?"), "a row of a changelog is one of these"),
        (NUMBERS, {"partition": lambda row: -1}, (1,), "it is a number from 0 on"),
    ],
)
def test_a_row_that_cannot_be_a_record_is_told(
    made: Callable[..., Published], schema: str, settings: dict[str, Any], row: Any, problem: str
) -> None:
    out = made(schema, **settings).open()
    with pytest.raises(hw.RowError, match=f"step 'out'.*{problem}"):
        out.publish(0, [row])
