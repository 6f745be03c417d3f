"""Windows: what they hold, when they fire, and what comes out."""

from __future__ import annotations

from headwater.data.rows import Row
from headwater.graph.nodes import WindowNode
from headwater.operators.contract import Operator
from headwater.operators.window.counted import CountWindowOperator
from headwater.operators.window.operator import WindowOperator
from headwater.operators.window.sliced import SlicedWindowOperator
from headwater.operators.window.slicing import is_sliced


def window_operator(node: WindowNode, step: str, row: type[Row]) -> Operator:
    """By columns where that can be, else element by element."""
    if node.is_counted:
        return CountWindowOperator(node, step, row)
    return (SlicedWindowOperator if is_sliced(node) else WindowOperator)(node, step, row)
