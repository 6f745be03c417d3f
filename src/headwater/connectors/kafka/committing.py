"""Commits offsets to a consumer group, for those who watch the job from outside. The job itself never reads them."""

from __future__ import annotations

import time
from typing import Any

from headwater.connectors.contract import Positions
from headwater.connectors.kafka.connection import LOG, Connection, Errors, confluent_kafka, is_denied
from headwater.connectors.kafka.splits import Split

_CLOSE_S = 6.0
"""How long the last commit may take; also, in a client's words, how long one waits that nobody answers. No broker by
default allows less."""


class Committer:
    """Sends one commit at a time, without waiting for it; what goes wrong is logged, and the next commit makes up for it."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._package = confluent_kafka()
        self._group, self._connection = group, connection
        config = connection.config(
            Errors(connection),
            group_id=group,
            enable_auto_commit=False,
            session_timeout_ms=int(_CLOSE_S * 1000),
        )
        self._consumer = connection.made(self._package.Consumer, {**config, "on_commit": self._done})
        self._wanted: Positions = {}
        self._sent: Positions | None = None
        """What is under way."""
        self._committed: Positions = {}
        self._is_denied = False

    def commit(self, positions: Positions) -> None:
        """Make these the group's offsets, as soon as Kafka can."""
        self._wanted.update(positions)
        self._hear(0)
        self._send()

    def close(self) -> None:
        """Wait for the last commit, within a limit."""
        deadline = time.monotonic() + _CLOSE_S
        while self._is_behind and not self._is_denied and time.monotonic() < deadline:
            self._send()
            self._hear(0.05)
        self._consumer.close()

    @property
    def _is_behind(self) -> bool:
        return self._wanted != self._committed

    def _send(self) -> None:
        if self._sent is not None or not self._is_behind:
            return
        moved = {split: at for split, at in self._wanted.items() if self._committed.get(split) != at}
        offsets = [self._package.TopicPartition(*Split.parse(split), at) for split, at in moved.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except self._package.KafkaException as error:
            self._warn(error.args[0])
        else:
            self._sent = moved

    def _hear(self, seconds: float) -> None:
        """How the commit under way went, and what else the cluster says of the group."""
        heard = self._consumer.poll(seconds)
        if heard is not None and heard.error() is not None:
            self._warn(heard.error())

    def _done(self, error: Any, partitions: list[Any]) -> None:
        sent, self._sent = self._sent or {}, None
        failed = [one for one in [error, *(partition.error for partition in partitions)] if one is not None]
        if failed:
            self._warn(failed[0])
        else:
            self._is_denied = False
            self._committed.update(sent)

    def _warn(self, error: Any) -> None:
        way_out = ""
        if is_denied(error):
            self._is_denied, way_out = True, "; allow the client to read the group"
        said = self._connection.hidden(error.str())
        LOG.warning(
            "%s: offsets of group %s are not committed: %s%s", self._connection.what, self._group, said, way_out
        )
