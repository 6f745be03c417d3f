"""What a Kafka cluster says of itself: which partitions there are, where they begin and end. Every question has a limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import TimeoutError as LateAnswer
from dataclasses import dataclass
from typing import Any, TypeVar

from headwater.connectors.kafka.connection import LOG, TRY_S, Connection, Errors, confluent_kafka, is_denied, may_pass
from headwater.connectors.kafka.splits import Split
from headwater.errors import HeadwaterError

T = TypeVar("T")


@dataclass(frozen=True)
class Topic:
    """A topic as it is now."""

    id: str
    """Another one when the topic is deleted and made again."""
    partitions: tuple[int, ...]


class TopicsGone(Exception):
    """Topics that were there are not there any more; its arguments are their names."""


class Cluster:
    """Questions to a cluster, over one client that stays open."""

    def __init__(self, connection: Connection) -> None:
        package = confluent_kafka()
        self._connection = connection
        self._errors = Errors(connection)
        self._package = package
        self._has_told = False
        self._admin = connection.made(package.admin.AdminClient, connection.config(self._errors))

    def topic_names(self) -> list[str]:
        """All topics that are not Kafka's own."""
        found = self._ask(lambda limit_s: self._admin.list_topics(timeout=limit_s).topics)
        return sorted(name for name in found if not name.startswith("__"))

    def topics(self, names: Iterable[str]) -> dict[str, Topic]:
        """Those of some topics that exist."""
        wanted = self._package.TopicCollection(sorted(names))
        return self._ask(lambda limit_s: self._described(wanted, limit_s))

    def max_message_bytes(self, topic: str) -> int | None:
        """The most that a topic takes at once; None if the cluster does not tell."""
        admin = self._package.admin
        wanted = admin.ConfigResource(admin.ResourceType.TOPIC, topic)

        def ask(limit_s: float) -> int | None:
            (answer,) = self._admin.describe_configs([wanted], request_timeout=limit_s).values()
            try:
                found = answer.result(limit_s + 1).get("max.message.bytes")
            except self._package.KafkaException as error:
                if may_pass(error.args[0]):
                    raise
                return None
            return None if found is None else int(found.value)

        return self._ask(ask)

    def earliest(self, splits: Iterable[Split]) -> dict[Split, int]:
        """The first offset that is still there."""
        return self._offsets(dict.fromkeys(splits, self._package.admin.OffsetSpec.earliest()))

    def latest(self, splits: Iterable[Split]) -> dict[Split, int]:
        """The offset after the last record that is surely committed: a transaction that is open ends the view."""
        return self._offsets(dict.fromkeys(splits, self._package.admin.OffsetSpec.latest()))

    def since(self, splits: Iterable[Split], at_ms: int) -> dict[Split, int | None]:
        """The first offset at or after a time; None where there is no such record."""
        found = self._offsets(dict.fromkeys(splits, self._package.admin.OffsetSpec.for_timestamp(at_ms)))
        return {split: None if offset < 0 else offset for split, offset in found.items()}

    def _described(self, wanted: Any, limit_s: float) -> dict[str, Topic]:
        found = {}
        answers = self._admin.describe_topics(wanted, request_timeout=limit_s)
        for name, answer in answers.items():
            try:
                topic = answer.result(limit_s + 1)
            except self._package.KafkaException as error:
                if error.args[0].code() != self._package.KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
            else:
                found[name] = Topic(str(topic.topic_id), tuple(sorted(part.id for part in topic.partitions)))
        return found

    def _offsets(self, specs: Mapping[Split, Any]) -> dict[Split, int]:
        if not specs:
            return {}
        wanted = {self._package.TopicPartition(*split): spec for split, spec in specs.items()}
        committed = self._package.IsolationLevel.READ_COMMITTED

        def ask(limit_s: float) -> dict[Split, int]:
            answers = self._admin.list_offsets(wanted, isolation_level=committed, request_timeout=limit_s)
            try:
                return {Split(at.topic, at.partition): a.result(limit_s + 1).offset for at, a in answers.items()}
            except self._package.KafkaException as error:
                if error.args[0].code() in self._unknown:
                    self._refuse_if_gone({split.topic for split in specs}, limit_s)
                raise

        return self._ask(ask)

    def _refuse_if_gone(self, names: set[str], limit_s: float) -> None:
        known = self._described(self._package.TopicCollection(sorted(names)), limit_s)
        if gone := sorted(names - set(known)):
            raise TopicsGone(*gone)

    @property
    def _unknown(self) -> set[int]:
        return {self._package.KafkaError._NOENT, self._package.KafkaError.UNKNOWN_TOPIC_OR_PART}

    def _ask(self, work: Callable[[float], T]) -> T:
        """Try until the answer is there, the time is up, or trying again cannot help."""
        deadline = time.monotonic() + self._connection.timeout_s
        while True:
            left_s = deadline - time.monotonic()
            try:
                return work(min(TRY_S, max(left_s, 0.1)))
            except (self._package.KafkaException, LateAnswer) as error:
                self._admin.poll(0)  # hands out the errors that were told meanwhile
                is_hopeless = self._errors.is_hopeless or not self._may_pass(error)
                if is_hopeless or left_s <= TRY_S:
                    raise self._failed(error, waited=not is_hopeless) from None
                self._tell_of_waiting(error)
                time.sleep(min(0.1, left_s))

    def _tell_of_waiting(self, error: Exception) -> None:
        """Say once what is waited for: half a minute without a word looks like a job that hangs."""
        if not self._has_told:
            self._has_told = True
            limit_s = self._connection.timeout_s
            LOG.warning(
                "%s does not answer yet (%s); waiting up to %g s", self._connection.what, self._said(error), limit_s
            )

    def _may_pass(self, error: Exception) -> bool:
        return isinstance(error, LateAnswer) or may_pass(error.args[0]) or error.args[0].code() in self._unknown

    def _failed(self, error: Exception, *, waited: bool) -> HeadwaterError:
        if isinstance(error, self._package.KafkaException) and is_denied(error.args[0]):
            return self._connection.denied(error.args[0])
        limit = f"no answer within {self._connection.timeout_s:g} s: " if waited else ""
        return self._connection.failed(
            f"{limit}{self._said(error)}", "see that the servers run and let this client in, and start the job again"
        )

    def _said(self, error: Exception) -> str:
        said = error.args[0].str() if error.args else "nothing was heard"
        return self._errors.as_text() or self._connection.hidden(said)
