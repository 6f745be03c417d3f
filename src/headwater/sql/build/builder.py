"""Builds relations into a graph: each once, however many read it."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa

from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN, quoted, type_of
from headwater.data.types import is_key_type
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.graph import Graph
from headwater.graph.nodes import AsChangelogNode, ComputeNode, Node, SourceNode
from headwater.sql.catalog import Table
from headwater.sql.errors import SqlError
from headwater.sql.relations import Relation, Scan, View

Built = TypeVar("Built", bound=Relation)
_MAKERS: dict[type[Relation], Callable[[Any, Any], Flow]] = {}


def builds(kind: type[Built]) -> Callable[[Callable[[Builder, Built], Flow]], Callable[[Builder, Built], Flow]]:
    """Say that a function builds relations of a kind."""

    def take(function: Callable[[Builder, Built], Flow]) -> Callable[[Builder, Built], Flow]:
        _MAKERS[kind] = function
        return function

    return take


class Builder:
    """Puts the relations of a job's statements into its graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.ttl: dt.timedelta | None = None
        """After how long without rows, in processing time, groups, last rows, ranked and joined rows are forgotten."""
        self._flows: dict[tuple[str, Relation], Flow] = {}
        self._tables: dict[Table, Flow] = {}
        self._prefix = "query"
        self._counts: dict[str, int] = {}

    def over(self, graph: Graph) -> Builder:
        """The same for a copy of the graph, which has all steps that are built already."""
        made = Builder(graph)
        made.ttl = self.ttl
        made._flows, made._tables, made._counts = {**self._flows}, {**self._tables}, {**self._counts}
        return made

    def build(self, relation: Relation, prefix: str) -> Flow:
        """A relation; its steps are named after `prefix`, and what is built for another one is left to that.

        So changes elsewhere neither rename what is kept nor share it. What is to be shared is a view, or a table.
        """
        before, self._prefix = self._prefix, prefix
        try:
            return self.flow(relation)
        finally:
            self._prefix = before

    def flow(self, relation: Relation) -> Flow:
        """The rows of a relation, whose columns have its names."""
        if isinstance(relation, View):
            return self.build(relation.input, relation.name)
        if isinstance(relation, Scan) and self._prefix != relation.table.name:
            return self.build(relation, relation.table.name)
        known = (self._prefix, relation)
        if known not in self._flows:
            made = _MAKERS[type(relation)](self, relation)
            assert made.schema.names == relation.names, (made.schema.names, relation.names, relation.label)
            self._flows[known] = made
        return self._flows[known]

    def source(self, table: Table) -> Flow:
        """The rows of a table, as they are stored; however many queries read it, it is read once."""
        if table not in self._tables:
            self._tables[table] = self._source(table)
        return self._tables[table]

    def _source(self, table: Table) -> Flow:
        stored = {field.name: field for field in table.fields}
        if table.flow is not None:
            columns = {name: Term(field.type, quoted(name)) for name, field in stored.items()}
            return self.compute(table.flow, columns, timestamp=table.time, kind=f"{table.name}.time")
        if table.source is None:
            raise SqlError.not_supported(None, f"reading table {table.name!r}", "it can only be written to")
        watermarks = table.watermarks if table.time in stored else None
        schema = pa.schema([pa.field(f.name, f.type.arrow, f.is_nullable) for f in table.fields])
        node = SourceNode.of(source=table.source, schema=schema, watermarks=watermarks, name=table.name)
        flow = self.graph.add(node)
        self.graph.set_uid(flow.origin, uid_part(table.name))
        if table.changes:
            flow = self.graph.add(AsChangelogNode.of(flow, key=table.primary_key or None, name="changes"))
            self.graph.set_uid(flow.origin, uid_part(f"{table.name}.changes"))
        return flow

    def named(self, build: Callable[[], Flow], kind: str) -> Flow:
        """What adds its nodes itself, with a uid for the last of them."""
        flow = build()
        self.graph.set_uid(flow.origin, self._uid(kind))
        return flow

    def add(self, node: Node, kind: str) -> Flow:
        """A node under a uid of its own."""
        flow = self.graph.add(replace(node, name=kind))
        self.graph.set_uid(flow.origin, self._uid(kind))
        return flow

    def _uid(self, kind: str) -> str:
        base = uid_part(f"{self._prefix}.{kind}")
        number = self._counts[base] = self._counts.get(base, 0) + 1
        return base if number == 1 else f"{base}-{number}"

    def compute(
        self,
        flow: Flow,
        columns: Mapping[str, Term],
        *,
        condition: Term | None = None,
        timestamp: str | None = None,
        kind: str = "select",
        words: str = "",
    ) -> Flow:
        """Columns of terms; nothing where they are those that are there."""
        is_same = list(columns) == flow.schema.names and all(term.sql == quoted(name) for name, term in columns.items())
        if is_same and condition is None and timestamp is None:
            return flow
        node = ComputeNode.of(flow, columns=columns, condition=condition, timestamp=timestamp, words=words)
        return self.add(node, kind)

    def timed(self, relation: Relation, column: str) -> Flow:
        """The rows of a relation with the event time of one of its columns."""
        flow = self.flow(relation)
        if relation.row_time == column:
            return flow
        return self.compute(flow, as_they_are(relation), timestamp=column, kind="time")

    def keyed(self, flow: Flow, columns: tuple[str, ...], what: str) -> Flow:
        """Rows by columns."""
        for column in columns:
            dtype = flow.schema.field(column).type
            if not is_key_type(dtype):
                raise SqlError.wrong_type(
                    None, f"column {column!r}, which {what} goes by", str(dtype), "exact equality"
                )
        return flow.keyed(Key.of(flow.schema, columns, step=what))

    def in_one_place(self, flow: Flow) -> tuple[Flow, str]:
        """Rows with one more column, the same in all of them, as key; and its name."""
        name = "all_rows"
        while name in flow.schema.names:
            name += "_"
        columns = {column: term_of(flow, column) for column in flow.schema.names}
        grown = self.compute(flow, {**columns, name: Term(BOOLEAN, "true")}, kind="all")
        return grown, name


def as_they_are(relation: Relation) -> dict[str, Term]:
    """All columns of a relation as terms."""
    return {field.name: Term(field.type, quoted(field.name)) for field in relation.fields}


def term_of(flow: Flow, column: str) -> Term:
    """A column of a flow."""
    return Term(type_of(flow.schema.field(column).type), quoted(column))


def uid_part(text: str) -> str:
    """A uid that is like a text, whatever is in it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:90]
