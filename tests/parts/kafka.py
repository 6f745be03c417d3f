"""A Kafka broker of our own for tests and benchmarks: one process on loopback, its jars fetched with Maven into a cache."""

from __future__ import annotations

import secrets
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.parts.maven import jars
from tests.parts.ports import free_port

from headwater.spark.java import find_java

VERSION = "4.1.1"
USER = "headwater"
_START_S = 60
"""How long a broker may take to answer on a busy machine."""
_ANSWER_S = 20
_QUICK_START = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def broker_jars() -> Path:
    """Where the jars of a broker are."""
    # Kafka logs through slf4j, which drops everything unless something that prints is there.
    return jars(f"kafka-{VERSION}", f"org.apache.kafka:kafka_2.13:{VERSION}", "org.slf4j:slf4j-simple:1.7.36")


def login(password: str) -> dict[str, str]:
    """The options of a client that is `USER`."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": USER,
        "sasl.password": password,
    }


class KafkaBroker:
    """One broker, which is its own controller, in a folder of its own.

    `servers` is open to everybody; `sasl_servers` to `USER` with `password`, by SASL_PLAINTEXT and PLAIN.
    """

    def __init__(self) -> None:
        self._jars = broker_jars()
        self._java = find_java() / "bin" / "java"
        self._folder = Path(tempfile.mkdtemp(prefix="headwater-kafka-"))
        self.password = secrets.token_hex(16)
        port, sasl_port, controller_port = free_port(), free_port(), free_port()
        self.servers = f"127.0.0.1:{port}"
        self.sasl_servers = f"127.0.0.1:{sasl_port}"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings = self._folder / "server.properties"
        self._settings.write_text(self._properties(f"127.0.0.1:{controller_port}"))
        self._format()

    @property
    def pid(self) -> int:
        """The process; the broker must be running."""
        assert self._process is not None
        return self._process.pid

    @property
    def folder(self) -> Path:
        """Where its settings, its data and its log are."""
        return self._folder

    def start(self) -> None:
        """Start the broker on its data and its ports, and wait until it answers."""
        assert self._process is None, "the broker runs"
        with self._log.open("ab") as out:
            self._process = self._popen("kafka.Kafka", str(self._settings), output=out)
        deadline = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"Kafka did not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """Let the broker end by itself; its data stays."""
        self._end(lambda process: process.terminate())

    def kill(self) -> None:
        """End the broker at once; its data stays."""
        self._end(lambda process: process.kill())

    def remove(self) -> None:
        """End the broker and remove its data."""
        self.kill()
        shutil.rmtree(self._folder)

    def create_topic(self, name: str, partitions: int = 1, **config: Any) -> None:
        """Make a topic; its settings are Kafka's with '_' for '.', as `retention_ms=1000`."""
        settings = {key.replace("_", "."): str(value) for key, value in config.items()}
        admin, topic = self.admin(), NewTopic(name, partitions, 1, config=settings)
        self._wait(lambda: _is_made(admin, topic), f"no broker takes topic {name}")
        self._wait(lambda: _has_leaders(admin, name), f"topic {name} is not there")

    def delete_topic(self, name: str) -> None:
        """Remove a topic, and wait until nobody finds it."""
        admin = self.admin()
        admin.delete_topics([name])[name].result(_ANSWER_S)
        self._wait(lambda: name not in admin.list_topics(timeout=_ANSWER_S).topics, f"topic {name} is still there")

    @contextmanager
    def denied(self, kind: ResourceType, name: str, operation: AclOperation) -> Iterator[None]:
        """Let `USER` not do something, meanwhile, with what has this name."""
        rule = (kind, name, ResourcePatternType.LITERAL, f"User:{USER}", "*", operation, AclPermissionType.DENY)
        binding, admin = AclBinding(*rule), self.admin()
        admin.create_acls([binding])[binding].result(_ANSWER_S)
        try:
            yield
        finally:
            wanted = AclBindingFilter(*rule)
            admin.delete_acls([wanted])[wanted].result(_ANSWER_S)

    def admin(self) -> AdminClient:
        """A client that asks for and changes what is on the broker."""
        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _answers(self) -> bool:
        try:
            return bool(self.admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + _ANSWER_S
        while not condition():
            assert time.monotonic() < deadline, otherwise
            time.sleep(0.05)

    def _end(self, signal: Callable[[subprocess.Popen[bytes]], None]) -> None:
        process, self._process = self._process, None
        if process is not None:
            signal(process)
            try:
                process.wait(_START_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise RuntimeError(f"Kafka did not stop:\n{self._log.read_text()[-4000:]}") from None

    def _format(self) -> None:
        cluster = str(uuid.uuid4())
        arguments = ("format", "--cluster-id", cluster, "--config", str(self._settings))
        process = self._popen("kafka.tools.StorageTool", *arguments, output=subprocess.PIPE)
        said, _ = process.communicate(timeout=_START_S)
        if process.returncode != 0:
            raise RuntimeError(f"Kafka's folder cannot be made:\n{said.decode()}")

    def _popen(self, program: str, *arguments: str, output: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [self._java, *_QUICK_START, "-cp", f"{self._jars}/*", program, *arguments],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def _properties(self, controller: str) -> str:
        login = "org.apache.kafka.common.security.plain.PlainLoginModule"
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@{controller}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"PLAINTEXT://{self.servers},SASL_PLAINTEXT://{self.sasl_servers},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.servers},SASL_PLAINTEXT://{self.sasl_servers}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "true",
            "super.users": "User:ANONYMOUS",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": f'{login} required user_{USER}="{self.password}";',
            "log.dirs": self._folder / "data",
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "broker.session.timeout.ms": 1500,  # a broker that was killed is let in again after this
            "broker.heartbeat.interval.ms": 500,
            "log.retention.check.interval.ms": 1000,
            "message.max.bytes": 16 << 20,
        }
        return "".join(f"{name}={value}\n" for name, value in settings.items())


def _is_made(admin: AdminClient, topic: NewTopic) -> bool:
    """Make a topic, unless the broker is shut out just now: on a busy machine its heartbeat may be late."""
    try:
        admin.create_topics([topic])[topic.topic].result(_ANSWER_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
            raise
        return False
    return True


def _has_leaders(admin: AdminClient, topic: str) -> bool:
    found = admin.list_topics(timeout=_ANSWER_S).topics.get(topic)
    return found is not None and all(partition.leader >= 0 for partition in found.partitions.values())
