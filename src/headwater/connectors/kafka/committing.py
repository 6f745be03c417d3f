"""Commits offsets to a consumer group, for those who watch the job from outside. The job itself never reads them."""

from __future__ import annotations

from typing import Any

from headwater.connectors.contract import Positions
from headwater.connectors.kafka.connection import LOG, Connection, Errors, confluent_kafka
from headwater.connectors.kafka.splits import Split


class Committer:
    """Sends commits without waiting for them; what goes wrong is logged, and the next commit makes up for it."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._package = confluent_kafka()
        self._group, self._what = group, connection.what
        config = connection.config(Errors(connection.what), group_id=group, enable_auto_commit=False)
        self._consumer = connection.made(self._package.Consumer, {**config, "on_commit": self._done})
        self._committed: Positions = {}

    def commit(self, positions: Positions) -> None:
        """Make these the group's offsets, as soon as Kafka can."""
        self._consumer.poll(0)  # hears how earlier commits went
        moved = {split: at for split, at in positions.items() if self._committed.get(split) != at}
        if not moved:
            return
        offsets = [self._package.TopicPartition(*Split.parse(split), at) for split, at in moved.items()]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=True)
        except self._package.KafkaException as error:
            self._warn(error.args[0])
        else:
            self._committed.update(moved)

    def close(self) -> None:
        """Wait for the commits that are under way, within the client's own limits."""
        self._consumer.close()

    def _done(self, error: Any, partitions: list[Any]) -> None:
        for failed in [error, *(partition.error for partition in partitions)]:
            if failed is not None:
                self._committed.clear()  # so that all are sent again
                self._warn(failed)
                return

    def _warn(self, error: Any) -> None:
        LOG.warning("%s: offsets of group %s are not committed: %s", self._what, self._group, error.str())
