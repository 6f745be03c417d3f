"""Which operator runs a stateful node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.graph.nodes import Node, WindowNode
from headwater.operators.contract import Combiner, Operator
from headwater.operators.process import KeyedProcessOperator
from headwater.operators.running import RunningOperator
from headwater.operators.stateful_process import StatefulProcessOperator
from headwater.operators.window import window_operator
from headwater.operators.window.slicing import combiner_of
from headwater.rows import Row
from headwater.schema import Schema

_OPERATORS: dict[str, Callable[[Any, str, type[Row]], Operator]] = {
    "keyed_process": KeyedProcessOperator,
    "running": RunningOperator,
    "stateful_process": StatefulProcessOperator,
    "window": window_operator,
}


def combiner_for(node: Node, step: str) -> Combiner | None:
    """What combines rows on their way to a step, if anything does."""
    return combiner_of(node, step) if isinstance(node, WindowNode) else None


def operator_for(node: Node, step: str, input_schema: Schema) -> Operator:
    """The operator of a stateful step on one subtask."""
    return _OPERATORS[node.operation](node, step, input_schema.row)
