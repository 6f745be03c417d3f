"""What a stream is without its environment: where rows come from, what they look like and how they are keyed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from headwater.data.schema import Schema
from headwater.errors import GraphError, SchemaError
from headwater.graph.changelog import APPEND_ONLY, Changelog, together
from headwater.graph.checks import check_callable
from headwater.graph.edges import (
    BROADCAST,
    FORWARD,
    GLOBAL,
    NO_KEY,
    REBALANCE,
    Edge,
    Exchange,
    Key,
    On,
    Partitioner,
    joined_columns,
)


@dataclass(frozen=True, kw_only=True)
class Flow:
    """Rows on their way to a step: what nodes are made from. A graph gives one for each node it takes."""

    edges: tuple[Edge, ...]
    schema: Schema
    key: Key = NO_KEY
    changelog: Changelog = APPEND_ONLY
    """What the rows do to the table they describe."""
    untimed: tuple[str, ...] = ()
    """The sources above that never end and have no watermarks, so that event time would never come."""

    @property
    def origin(self) -> int:
        """The step that the rows come from, for a flow of one."""
        (edge,) = self.edges
        return edge.source

    def moved(self, exchange: Exchange) -> Flow:
        """The rows, moved between subtasks by an exchange; they have no key afterwards."""
        if exchange == REBALANCE and not self.changelog.is_append_only:
            raise GraphError.takes_no_changes("rebalance", self.changelog.describe())
        edges = tuple(dataclasses.replace(edge, exchange=exchange) for edge in self.edges)
        return dataclasses.replace(self, edges=edges, key=NO_KEY)

    def keyed(self, key: Key) -> Flow:
        """The rows by key: those of one key meet in one place."""
        return dataclasses.replace(self.moved(Exchange("key", key)), key=key)

    def partitioned(self, key: Key, partitioner: Partitioner) -> Flow:
        """The rows where a function of the key says."""
        check_callable(partitioner, "partition_custom")
        return self.moved(Exchange("custom", key, partitioner))

    def everywhere(self) -> Flow:
        """Every row on every subtask."""
        return self.moved(BROADCAST)

    def together(self) -> Flow:
        """All rows in one place."""
        return self.moved(GLOBAL)

    def in_place(self) -> Flow:
        """The rows where they are."""
        return self.moved(FORWARD)

    def spread(self) -> Flow:
        """The rows, dealt out evenly where nobody said how: for a step that is on a level of its own."""
        edges = tuple(
            edge if edge.exchange.moves else dataclasses.replace(edge, exchange=REBALANCE) for edge in self.edges
        )
        return dataclasses.replace(self, edges=edges)

    def union(self, *others: Flow) -> Flow:
        """These rows and others of the same schema."""
        edges, untimed = self.edges, self.untimed
        changelog = together([self.changelog, *(other.changelog for other in others)])
        for other in others:
            if other.schema != self.schema:
                raise SchemaError.does_not_fit(
                    "union", f"schemas differ: '{self.schema}' and '{other.schema}'", "select or map one of them first"
                )
            edges, untimed = edges + other.edges, untimed + other.untimed
        return Flow(edges=edges, schema=self.schema, changelog=changelog, untimed=tuple(dict.fromkeys(untimed)))


def joined_on(left: Flow, right: Flow, on: On | None, step: str) -> tuple[Flow, Flow]:
    """Both flows, keyed by the columns they are joined on; without those, as they are."""
    if on is None:
        return left, right
    if not (left.key.is_nothing and right.key.is_nothing):
        raise GraphError.bad_argument(step, "takes `on` for streams without key", on, "leave it out")
    columns = joined_columns(on, step)
    return (
        left.keyed(Key.of(left.schema, tuple(columns))),
        right.keyed(Key.of(right.schema, tuple(columns.values()))),
    )
