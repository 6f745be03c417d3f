"""Which operator runs a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.graph.nodes import Node, WindowNode
from headwater.operators.broadcast_process import BroadcastProcessOperator
from headwater.operators.co_process import CoProcessOperator
from headwater.operators.contract import Combiner, Operator, StatelessOperator
from headwater.operators.join.interval import IntervalJoinOperator
from headwater.operators.join.regular import RegularJoinOperator
from headwater.operators.join.temporal import TemporalJoinOperator
from headwater.operators.join.window import WindowJoinOperator
from headwater.operators.lookup_join import LookupJoinOperator
from headwater.operators.map_async import MapAsyncOperator
from headwater.operators.process import KeyedProcessOperator
from headwater.operators.running import RunningOperator
from headwater.operators.stateful_process import StatefulProcessOperator
from headwater.operators.stateless import (
    FilterOperator,
    FlatMapOperator,
    MapBatchesOperator,
    MapOperator,
    ProcessOperator,
    QueryOperator,
)
from headwater.operators.window import window_operator
from headwater.operators.window.slicing import combiner_of
from headwater.schema import Schema

_STATEFUL: dict[str, Callable[..., Operator]] = {
    "broadcast_process": BroadcastProcessOperator,
    "co_process": CoProcessOperator,
    "interval_join": IntervalJoinOperator,
    "keyed_process": KeyedProcessOperator,
    "regular_join": RegularJoinOperator,
    "running": RunningOperator,
    "stateful_process": StatefulProcessOperator,
    "temporal_join": TemporalJoinOperator,
    "window": window_operator,
    "window_join": WindowJoinOperator,
}
_STATELESS: dict[str, Callable[..., StatelessOperator]] = {
    "map": MapOperator,
    "flat_map": FlatMapOperator,
    "filter": FilterOperator,
    "select": QueryOperator,
    "where": QueryOperator,
    "map_batches": MapBatchesOperator,
    "map_async": MapAsyncOperator,
    "lookup_join": LookupJoinOperator,
    "process": ProcessOperator,
}


def combiner_for(node: Node, step: str) -> Combiner | None:
    """What combines rows on their way to a step, if anything does."""
    return combiner_of(node, step) if isinstance(node, WindowNode) else None


def operator_for(node: Node, step: str, inputs: Sequence[Schema]) -> Operator:
    """The operator of a stateful step on one subtask; it is given the row class of each of its inputs."""
    return _STATEFUL[node.operation](node, step, *(schema.row for schema in inputs))


def stateless_operator(node: Node, step: str, input_schema: Schema) -> StatelessOperator:
    """The operator of a stateless step."""
    return _STATELESS[node.operation](node, step, input_schema.row)
