"""Which operator runs a stateful node."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headwater.graph.nodes import Node, WindowNode
from headwater.operators.broadcast_process import BroadcastProcessOperator
from headwater.operators.co_process import CoProcessOperator
from headwater.operators.contract import Combiner, Operator
from headwater.operators.join.interval import IntervalJoinOperator
from headwater.operators.process import KeyedProcessOperator
from headwater.operators.running import RunningOperator
from headwater.operators.window import window_operator
from headwater.operators.window.slicing import combiner_of
from headwater.schema import Schema

_OPERATORS: dict[str, Callable[..., Operator]] = {
    "broadcast_process": BroadcastProcessOperator,
    "co_process": CoProcessOperator,
    "interval_join": IntervalJoinOperator,
    "keyed_process": KeyedProcessOperator,
    "running": RunningOperator,
    "window": window_operator,
}


def combiner_for(node: Node, step: str) -> Combiner | None:
    """What combines rows on their way to a step, if anything does."""
    return combiner_of(node, step) if isinstance(node, WindowNode) else None


def operator_for(node: Node, step: str, inputs: Sequence[Schema]) -> Operator:
    """The operator of a stateful step on one subtask; it is given the row class of each of its inputs."""
    return _OPERATORS[node.operation](node, step, *(schema.row for schema in inputs))
