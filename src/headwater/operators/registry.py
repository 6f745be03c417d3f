"""Which operator runs a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.data.schema import Schema
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
from headwater.state.backend import StateBackend
from headwater.state.memory import MEMORY

ON_A_BACKEND: dict[str, Callable[..., Operator]] = {
    "broadcast_process": BroadcastProcessOperator,
    "co_process": CoProcessOperator,
    "keyed_process": KeyedProcessOperator,
    "running": RunningOperator,
}
"""Steps whose state lives where the job's backend keeps it."""
IN_MEMORY: dict[str, Callable[..., Operator]] = {
    "interval_join": IntervalJoinOperator,
    "regular_join": RegularJoinOperator,
    "stateful_process": StatefulProcessOperator,
    "temporal_join": TemporalJoinOperator,
    "window": window_operator,
    "window_join": WindowJoinOperator,
}
STATEFUL = ON_A_BACKEND | IN_MEMORY
STATELESS: dict[str, Callable[..., StatelessOperator]] = {
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


def operator_for(node: Node, step: str, inputs: Sequence[Schema], backend: StateBackend = MEMORY) -> Operator:
    """The operator of a stateful step on one subtask; it is given the row class of each of its inputs."""
    rows = [schema.row for schema in inputs]
    if node.operation in ON_A_BACKEND:
        return ON_A_BACKEND[node.operation](node, step, *rows, backend=backend)
    return IN_MEMORY[node.operation](node, step, *rows)


def stateless_operator(node: Node, step: str, input_schema: Schema) -> StatelessOperator:
    """The operator of a stateless step."""
    return STATELESS[node.operation](node, step, input_schema.row)
