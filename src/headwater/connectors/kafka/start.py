"""Where a job begins to read when it first starts: the earliest record, the latest, a time, or offsets."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from headwater.connectors.kafka.cluster import Cluster
from headwater.connectors.kafka.splits import Split
from headwater.errors import GraphError
from headwater.words import StartName

StartLike: TypeAlias = "StartName | dt.datetime | Mapping[str, Mapping[int, int]]"
_NAMED = ("earliest", "latest")


@dataclass(frozen=True)
class Start:
    """One of the ways to begin; offsets may name some partitions, the others begin at the earliest record."""

    named: str = "earliest"
    since_ms: int | None = None
    offsets: Mapping[Split, int] | None = None

    @classmethod
    def of(cls, given: StartLike) -> Start:
        """What a user has written."""
        if isinstance(given, dt.datetime):
            if given.tzinfo is None:
                raise GraphError.bad_argument(
                    "kafka", "starts at a time with a zone", given, "give it one, such as tzinfo=datetime.UTC"
                )
            return cls(since_ms=int(given.timestamp() * 1000))
        if isinstance(given, str) and given in _NAMED:
            return cls(named=given)
        if isinstance(given, Mapping):
            found = {Split(topic, int(p)): int(offset) for topic, parts in given.items() for p, offset in parts.items()}
            if all(offset >= 0 for offset in found.values()):
                return cls(offsets=found)
        raise GraphError.bad_argument(
            "kafka", "starts somewhere", given, "write 'earliest', 'latest', a datetime, or {'topic': {0: 17}}"
        )

    def positions(self, cluster: Cluster, splits: Iterable[Split]) -> dict[Split, int]:
        """Where each partition begins."""
        splits = list(splits)
        if self.named == "latest":
            return cluster.latest(splits)
        if self.since_ms is not None:
            ends = cluster.latest(splits)
            return {s: ends[s] if at is None else at for s, at in cluster.since(splits, self.since_ms).items()}
        return {**cluster.earliest(splits), **{s: at for s, at in (self.offsets or {}).items() if s in splits}}
