"""OVER, numbers of rows in the order of time, and rows in that order."""

from __future__ import annotations

from headwater.graph.flow import Flow
from headwater.graph.nodes import OverAggregateNode
from headwater.graph.nodes.over import ROWS, Frame, Numbering
from headwater.sql.build.builder import Builder, as_they_are, builds
from headwater.sql.errors import SqlError
from headwater.sql.relations import EVENT, Numbered, Over, SortByTime, unused


@builds(Over)
def _over(builder: Builder, relation: Over) -> Flow:
    flow = builder.timed(relation.input, relation.time) if relation.domain == EVENT else builder.flow(relation.input)
    functions = {call.name: call.kernel for call in relation.calls}
    frame = Frame(relation.frame.lower(), relation.preceding)
    node = OverAggregateNode.of(
        flow,
        functions=functions,
        partition_by=relation.partition,
        time=relation.domain,
        frame=frame,
        ttl=builder.ttl,
    )
    return builder.compute(builder.add(node, "over"), as_they_are(relation), kind="columns")


@builds(Numbered)
def _numbered(builder: Builder, relation: Numbered) -> Flow:
    """Numbers that stay as they are: those in the order of time."""
    order = relation.order
    time = relation.input.by_name[order[0].column].time if len(order) == 1 else None
    if time is None or order[0].is_falling or relation.updates:
        raise SqlError.not_supported(
            None,
            "ROW_NUMBER() without a bound",
            f"select from it in a subquery, with WHERE {relation.number} <= 10 or another bound, which makes it a Top-N",
        )
    flow = builder.timed(relation.input, order[0].column) if time == EVENT else builder.flow(relation.input)
    numbering = {relation.number: Numbering("row_number")}
    node = OverAggregateNode.of(
        flow, functions=numbering, partition_by=relation.partition, time=time, frame=Frame(ROWS), ttl=builder.ttl
    )
    return builder.compute(builder.add(node, "row_number"), as_they_are(relation), kind="columns")


@builds(SortByTime)
def _sorted(builder: Builder, relation: SortByTime) -> Flow:
    flow = builder.flow(relation.input)
    number = unused("row_number", relation.names)
    node = OverAggregateNode.of(flow, functions={number: Numbering("row_number")}, frame=Frame(ROWS))
    return builder.compute(builder.add(node, "order_by"), as_they_are(relation), kind="columns")
