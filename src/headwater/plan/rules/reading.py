"""Sources read what is used: columns, and fields of rows in columns, that no computation of SQL asks for are left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from headwater.data.functions.terms import Term
from headwater.data.functions.types import quoted, type_of
from headwater.data.schema import Schema
from headwater.graph.edges import Edge
from headwater.graph.flow import Flow
from headwater.graph.graph import Graph
from headwater.graph.nodes import AssignWatermarksNode, ComputeNode, Node, SourceNode

if TYPE_CHECKING:
    from headwater.plan.plan import JobPlan

Parts = dict[str, frozenset[str] | None]
"""The columns that are used, each with those of its fields that are; None if it is used as a whole."""
_FIELD = r"struct_extract\({}, '((?:[^']|'')*)'\)"


def read_less(plan: JobPlan) -> None:
    """Leave out what nobody uses, from the sources that can do without to the steps that ask for columns by name."""
    used = _used(plan.graph)
    if any(node.is_source and used[node.id] is not None for node in plan.graph):
        plan.graph = _narrowed(plan.graph, used)


# -- what is used -----------------------------------------------------------------------------------------------------


def _used(graph: Graph) -> dict[int, Parts | None]:
    """Of each step's rows, what those use that read them; None for all of it."""
    used: dict[int, Parts | None] = {}
    for node in reversed(list(graph)):
        asked = [_asked(graph, reader, edge, used[reader.id]) for reader, edge in graph.consumers(node)]
        used[node.id] = _together(asked) if asked else None
    return used


def _asked(graph: Graph, reader: Node, edge: Edge, below: Parts | None) -> Parts | None:
    """What a step uses of the rows that come to it, given what is used of its own."""
    if edge.tag is not None:  # other rows
        return {}
    if edge.exchange.moves or not _can_narrow(graph, reader):
        return None
    if isinstance(reader, AssignWatermarksNode):
        assert reader.watermarks.column is not None
        return None if below is None else {**below, reader.watermarks.column: None}
    assert isinstance(reader, ComputeNode)
    (stage,) = reader.stages
    whole = {quoted(name): name for name in graph.input_schema(reader).names}
    passed: list[Parts] = []
    texts = [] if stage.condition is None else [stage.condition.sql]
    for name, term in _kept(reader, below):
        if term.sql in whole:
            passed.append({whole[term.sql]: None if below is None else below.get(name)})
        else:
            texts.append(term.sql)
    return _together([*passed, _in_texts(texts, graph.input_schema(reader).arrow)])


def _can_narrow(graph: Graph, node: Node) -> bool:
    """Whether a step says what it uses, and can be made anew for less."""
    if len(node.inputs) != 1 or not graph.carried(node.inputs[0]).is_append_only:
        return False
    if isinstance(node, AssignWatermarksNode):
        return node.watermarks.generator is None
    return isinstance(node, ComputeNode) and len(node.stages) == 1


def _kept(node: ComputeNode, used: Parts | None) -> Sequence[tuple[str, Term]]:
    """The columns that a computation still has; at least one, since rows are counted."""
    columns = node.stages[0].columns
    if used is None:
        return columns
    return [one for one in columns if one[0] in used or one[0] == node.timestamp] or columns[:1]


def _together(parts: Iterable[Parts | None]) -> Parts | None:
    found: Parts = {}
    for one in parts:
        if one is None:
            return None
        for name, fields in one.items():
            before = found.get(name, frozenset())
            found[name] = None if fields is None or before is None else before | fields
    return found


def _in_texts(texts: Sequence[str], schema: pa.Schema) -> Parts:
    """The columns whose names are in some texts of DuckDB's; their fields, if nothing else of them is asked for."""
    found: Parts = {}
    for field in schema:
        name = quoted(field.name)
        times = sum(text.count(name) for text in texts)
        if not times:
            continue
        pattern = re.compile(_FIELD.format(re.escape(name)))
        fields = [one.replace("''", "'") for text in texts for one in pattern.findall(text)]
        is_in_parts = pa.types.is_struct(field.type) and len(fields) == times
        found[field.name] = frozenset(fields) if is_in_parts else None
    return found


# -- steps for less -----------------------------------------------------------------------------------------------------


def _narrowed(graph: Graph, used: dict[int, Parts | None]) -> Graph:
    less = Graph(graph.name)
    places: dict[int, int] = {}
    """Where each step is now."""
    for node in graph:
        edges = tuple(replace(edge, source=places[edge.source]) for edge in node.inputs)
        kept: Node = replace(node, uid=graph.uid(node), inputs=edges)
        if isinstance(kept, SourceNode):
            kept = _source(kept, used[node.id])
        elif _can_narrow(graph, node) and edges[0].tag is None:
            kept = _made_anew(less, kept, used[node.id])
        places[node.id] = less.add(kept).origin
    return less


def _source(node: SourceNode, used: Parts | None) -> SourceNode:
    if used is None or node.watermarks.generator is not None:
        return node
    fields = []
    for field in node.schema.arrow:
        if field.name == node.watermarks.column:
            fields.append(field)
        elif field.name in used:
            fields.append(field.with_type(_type(field.type, used[field.name])))
    schema = Schema(pa.schema(fields or [next(iter(node.schema.arrow))]))
    return replace(node, schema=schema) if node.source.can_read(schema) else node


def _type(dtype: pa.DataType, fields: frozenset[str] | None) -> pa.DataType:
    if fields is None:
        return dtype
    return pa.struct([dtype.field(at) for at in range(dtype.num_fields) if dtype.field(at).name in fields])


def _made_anew(graph: Graph, node: Node, used: Parts | None) -> Node:
    """A step that reads a schema which may have become less."""
    (edge,) = node.inputs
    schema = graph.edge_schema(edge)
    if isinstance(node, AssignWatermarksNode):
        return replace(node, schema=schema)
    assert isinstance(node, ComputeNode)
    types = {quoted(field.name): field.type for field in schema.arrow}
    columns = {name: _fitted(term, types.get(term.sql)) for name, term in _kept(node, used)}
    flow = Flow(edges=node.inputs, schema=schema, changelog=graph.carried(edge))
    made = ComputeNode.of(
        flow,
        columns=columns,
        condition=node.stages[0].condition,
        timestamp=node.timestamp,
        words=node.words,
        name=node.name,
    )
    return replace(made, uid=node.uid)


def _fitted(term: Term, given: pa.DataType | None) -> Term:
    """A column that passes, as what it has become."""
    return term if given is None or term.type.arrow == given else Term(type_of(given), term.sql)
