"""Top-N, deduplication, LIMIT: rows that are chosen by their place in an order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN
from headwater.graph.flow import Flow
from headwater.graph.nodes import (
    AsChangelogNode,
    DistinctNode,
    KeepFirstNode,
    KeepLastNode,
    TopNNode,
    WindowTopNNode,
)
from headwater.sql.build.builder import Builder, as_they_are, builds
from headwater.sql.build.groups import at_last_moment
from headwater.sql.relations import EVENT, Deduplicate, Order, Rank, unused


@builds(Rank)
def _rank(builder: Builder, relation: Rank) -> Flow:
    settings = _order(relation.order)
    number = relation.number
    if relation.windowed is not None:
        flow = at_last_moment(builder, relation.input, relation.windowed)
        node: Any = WindowTopNNode.of(
            flow,
            window_end=relation.windowed.end,
            n=relation.last,
            first=relation.first,
            partition_by=relation.partition,
            rank=number,
            **settings,
        )
        return builder.compute(builder.add(node, "window_top_n"), as_they_are(relation), kind="columns")
    flow = builder.flow(relation.input)
    if not relation.order:  # LIMIT alone: all are equal, so that those stay that came first
        place = unused("place", relation.names)
        flow = builder.compute(flow, {**as_they_are(relation.input), place: Term(BOOLEAN, "true")}, kind="place")
        settings = {"by": [place], "descending": False}
    node = TopNNode.of(
        flow,
        n=relation.last,
        first=relation.first,
        partition_by=relation.partition,
        rank=number,
        ttl=builder.ttl,
        **settings,
    )
    return builder.compute(builder.add(node, "top_n"), as_they_are(relation), kind="columns")


def _order(order: Sequence[Order]) -> dict[str, Any]:
    """The settings of nodes; a column that comes again orders nothing more."""
    first: dict[str, Order] = {}
    for one in order:
        first.setdefault(one.column, one)
    return {
        "by": list(first),
        "descending": [one.is_falling for one in first.values()],
        "nulls_first": [one.is_null_first for one in first.values()],
    }


@builds(Deduplicate)
def _deduplicate(builder: Builder, relation: Deduplicate) -> Flow:
    keys = relation.keys
    if relation.windowed is not None:
        order = (Order(relation.time, relation.is_last, is_null_first=False),)
        flow = at_last_moment(builder, relation.input, relation.windowed)
        top = WindowTopNNode.of(
            flow, window_end=relation.windowed.end, n=1, partition_by=keys, rank=None, **_order(order)
        )
        return builder.compute(builder.add(top, "window_deduplicate"), as_they_are(relation), kind="columns")
    if relation.domain == EVENT:
        flow = builder.timed(relation.input, relation.time)
        node: Any = KeepFirstNode.of(flow, by=keys, ttl=builder.ttl)
        if relation.is_last:
            node = KeepLastNode.of(flow, by=keys, ttl=builder.ttl)
    elif relation.is_last:
        node = AsChangelogNode.of(builder.flow(relation.input), key=keys)
    else:
        node = DistinctNode.of(builder.flow(relation.input), by=keys, ttl=builder.ttl, since_first=True)
    return builder.compute(builder.add(node, "deduplicate"), as_they_are(relation), kind="columns")
