"""Splits of a Kafka source: partitions, named 'topic-partition' as Kafka writes them."""

from __future__ import annotations

from typing import NamedTuple


class Split(NamedTuple):
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Split:
        """A split by its name; a topic's name may have '-' in it, a partition's number has not."""
        topic, _, partition = text.rpartition("-")
        return cls(topic, int(partition))
