"""Rows of two flows that meet by key in windows: the steps that joins and co-groups become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headwater.data.functions.terms import Term
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import GraphError
from headwater.functions import Emitted, ProcessWindowFunction, WindowContext
from headwater.graph.flow import Flow
from headwater.graph.graph import Graph
from headwater.graph.nodes.joins import SUFFIX
from headwater.graph.nodes.windows import WindowJoinNode, WindowNode, pair_schemas
from headwater.graph.tagging import CoGroupFunction, JoinFunction, SideBySide, tagged
from headwater.graph.windowed import WindowedPair


def join_in_windows(
    graph: Graph,
    pair: WindowedPair,
    *,
    function: Callable[[Any, Any], Any] | None = None,
    schema: SchemaLike | None = None,
    condition: Term | None = None,
    suffix: str = SUFFIX,
) -> Flow:
    """Rows with a key and a window in common, as `function` makes rows of `schema` of them, or side by side."""
    if function is not None:
        value = _given_schema(pair.step, function, schema, "left, right")
        if pair.shows_left_alone:
            raise GraphError.bad_argument(
                pair.step, f"shows left rows as they are by how={pair.how!r}", function, "write .apply().map(function)"
            )
        return _by_element(graph, pair, JoinFunction(function, pair.how), value, value)
    if schema is not None:
        raise GraphError.bad_argument(
            pair.step, "takes a schema together with a function only", schema, "leave it out, or add a function"
        )
    value, shown, columns = pair_schemas(pair, suffix)
    if WindowJoinNode.can_do(pair) or condition is not None:
        return graph.add(WindowJoinNode.of(pair, condition=condition, suffix=suffix))
    side_by_side = SideBySide.of(pair.left.schema, pair.right.schema, columns)
    return _by_element(graph, pair, JoinFunction(side_by_side, pair.how), value, shown)


def group_in_windows(
    graph: Graph,
    pair: WindowedPair,
    *,
    function: Callable[[list[Any], list[Any], WindowContext], Emitted],
    schema: SchemaLike,
) -> Flow:
    """For each key and window, the rows of `schema` that a function of the rows of both gives."""
    value = _given_schema(pair.step, function, schema, "lefts, rights, ctx")
    return _by_element(graph, pair, CoGroupFunction(function), value, value)


def _by_element(graph: Graph, pair: WindowedPair, process: ProcessWindowFunction, value: Schema, shown: Schema) -> Flow:
    pair.firing(pair.step)
    pair.check_watermarks()
    return graph.add(WindowNode.of_pair(tagged(graph, pair), pair, process=process, value=value, shown=shown))


def _given_schema(step: str, function: Any, schema: SchemaLike | None, arguments: str) -> Schema:
    """The schema of what a function gives."""
    if not callable(function):
        raise GraphError.bad_argument(step, f"needs a function of {arguments}", function, "pass a function")
    if schema is None:
        raise GraphError.bad_argument(
            step, "needs the schema of what the function gives", None, "add schema='n bigint'"
        )
    return Schema.of(schema)
