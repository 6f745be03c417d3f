"""Relations that are computed row by row: scans, projections, filters, windows of rows, UNNEST, UNION, VALUES."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa

from headwater.connectors.memory import RowsSource
from headwater.data.expressions import Stage, computed, run
from headwater.data.functions.terms import Term
from headwater.data.functions.types import BOOLEAN, INT, Type, quoted, text_of
from headwater.data.schema import Schema
from headwater.graph.flow import Flow
from headwater.graph.nodes import (
    AssignWatermarksNode,
    CallNode,
    ComputeNode,
    DelayWatermarksNode,
    SessionNode,
    SourceNode,
)
from headwater.graph.nodes.calls import ColumnCall
from headwater.sql.build.builder import Builder, as_they_are, builds
from headwater.sql.catalog import Table
from headwater.sql.relations import (
    EVENT,
    Filter,
    Functions,
    Project,
    Relation,
    Retimed,
    Scan,
    Union,
    Unnest,
    Values,
    Window,
    WindowTable,
    unused,
)

_NOTHING = "nothing"


@builds(Scan)
def _scan(builder: Builder, relation: Scan) -> Flow:
    table: Table = relation.table
    flow = builder.source(table)
    computed_ = dict(relation.computed)
    columns = {
        field.name: computed_[field.name].term if field.name in computed_ else Term(field.type, quoted(field.name))
        for field in relation.fields
    }
    flow = builder.compute(flow, columns, kind="columns")
    if relation.time in computed_ and table.watermarks is not None:
        flow = builder.add(AssignWatermarksNode.of(flow, watermarks=table.watermarks), "watermarks")
    return flow


@builds(Values)
def _values(builder: Builder, relation: Values) -> Flow:
    one = pa.table({"one": [1]})
    tables = []
    for row in relation.rows:
        terms = dict(zip(relation.names, row, strict=True)) or {_NOTHING: Term(BOOLEAN, "true")}
        query, schema = computed([Stage(tuple(terms.items()))])
        tables.append(run(query, one, schema.arrow)[0])
    table = pa.concat_tables(tables)
    node = SourceNode.of(source=RowsSource([table], Schema(table.schema)), schema=table.schema, name="values")
    return builder.add(node, "values")


@builds(Project)
def _project(builder: Builder, relation: Project) -> Flow:
    source, condition, words = relation.input, None, ""
    if isinstance(source, Filter):
        condition, words = source.condition.term, f" where {source.condition.tree.sql()}"
        source = source.input
    if isinstance(source, Values) and not source.names and condition is None:
        terms = tuple(scalar.term for _, scalar in relation.items)  # SELECT without FROM
        return builder.flow(Values(relation.fields, tuple(terms for _ in source.rows)))
    flow = builder.flow(source)
    columns = {name: scalar.term for name, scalar in relation.items}
    words = ", ".join(name if s.column == name else f"{s.tree.sql()} as {name}" for name, s in relation.items) + words
    return builder.compute(flow, columns, condition=condition, words=words)


@builds(Filter)
def _filter(builder: Builder, relation: Filter) -> Flow:
    flow = builder.flow(relation.input)
    words = f"where {relation.condition.tree.sql()}"
    columns = as_they_are(relation)
    return builder.compute(flow, columns, condition=relation.condition.term, kind="where", words=words)


@builds(Retimed)
def _retimed(builder: Builder, relation: Retimed) -> Flow:
    delay = dt.timedelta(milliseconds=relation.input.by_name[relation.time].delay)
    node = DelayWatermarksNode.of(builder.flow(relation.input), column=relation.time, delay=delay)
    return builder.add(node, "event_time")


@builds(Functions)
def _functions(builder: Builder, relation: Functions) -> Flow:
    calls = []
    for call in relation.calls:
        dtype = call.function.result.arrow
        assert dtype is not None
        calls.append(ColumnCall(call.name, call.function.call, call.arguments, dtype, call.function.takes_arrow))
    return builder.add(CallNode.of(builder.flow(relation.input), calls=calls), "function")


@builds(Union)
def _union(builder: Builder, relation: Union) -> Flow:
    first, *others = (_alike(builder, part, relation) for part in relation.parts)
    return first.union(*others)


def _alike(builder: Builder, part: Relation, whole: Relation) -> Flow:
    """With columns that may all be null, and the names of the first part, so that schemas are the same."""
    flow = builder.flow(part)
    columns = dict(zip(whole.names, as_they_are(part).values(), strict=True))
    node = ComputeNode.of(flow, columns=columns)
    return flow if node.schema == flow.schema else builder.add(node, "columns")


@builds(Unnest)
def _unnest(builder: Builder, relation: Unnest) -> Flow:
    """Items first, as one column, then what they are made of."""
    of, items = relation.of.term.type, relation.of.term.sql
    if of.kind == "map":
        items = f"map_entries({items})"
    if relation.keeps_empty:
        items = f"(CASE WHEN {items} IS NULL OR len({items}) = 0 THEN [NULL] ELSE {items} END)"
    own = as_they_are(relation.input)
    flow = builder.flow(relation.input)
    made = relation.made
    place = (
        {made[-1].name: Term(INT, f"CAST(unnest(range(1, len({items}) + 1)) AS INTEGER)")} if relation.has_place else {}
    )
    values = made[: len(made) - relation.has_place]
    is_plain = of.kind == "array" and of.item.kind != "row"
    if is_plain:
        return builder.compute(flow, {**own, values[0].name: Term(of.item, f"unnest({items})"), **place}, kind="unnest")
    item = unused("item", relation.names)
    entry = of.item if of.kind == "array" else Type("row", parts=of.parts, names=("key", "value"))
    flow = builder.compute(flow, {**own, item: Term(entry, f"unnest({items})"), **place}, kind="unnest")
    parts = {
        field.name: Term(field.type, f"struct_extract({quoted(item)}, {text_of(part)})")
        for field, part in zip(values, entry.names, strict=True)
    }
    placed = {name: Term(INT, quoted(name)) for name in place}
    return builder.compute(flow, {**own, **parts, **placed}, kind="items")


@builds(WindowTable)
def _window_table(builder: Builder, relation: WindowTable) -> Flow:
    window = relation.made
    flow = builder.timed(relation.input, window.time) if window.domain == EVENT else builder.flow(relation.input)
    if relation.is_session:
        return _in_sessions(builder, relation, flow)
    columns = as_they_are(relation.input)
    for field, micros in zip(relation.fields[-3:], _bounds(window), strict=True):
        text = f"make_timestamp({micros})"
        if field.type.kind == "timestamp_ltz":
            text = f"({text} AT TIME ZONE 'UTC')"
        columns[field.name] = Term(field.type, text)
    return builder.compute(flow, columns, kind=window.kind.lower(), words=window.kind)


def _in_sessions(builder: Builder, relation: WindowTable, flow: Flow) -> Flow:
    """Rows when their session is over, which is when its bounds are known."""
    window, own = relation.made, as_they_are(relation.input)
    if window.partition:
        builder.keyed(flow, window.partition, "SESSION")
    start = unused("window_start", relation.input.names)
    end = unused("window_end", [*relation.input.names, start])
    gap = dt.timedelta(milliseconds=window.sizes[0])
    node = SessionNode.of(flow, gap=gap, partition_by=window.partition, time=window.domain, bounds=(start, end))
    made = builder.add(node, "session")
    last = f"({quoted(end)} - INTERVAL '1 millisecond')"
    for field, text in zip(relation.fields[-3:], (quoted(start), quoted(end), last), strict=True):
        is_zoned = field.type.kind == "timestamp_ltz"
        own[field.name] = Term(field.type, text if is_zoned else f"({text} AT TIME ZONE 'UTC')")
    return builder.compute(made, own, kind="columns")


def _bounds(window: Window) -> tuple[str, str, str]:
    """Start, end and last moment of each window that a row is in, in microseconds; several in lists, item by item."""
    at = f"epoch_us({quoted(window.time)})"
    size = window.sizes[-1] * 1000
    offset = window.offset * 1000

    def since(length: int) -> str:
        """How long the last multiple of a length has been over."""
        return f"((({at} - {offset}) % {length} + {length}) % {length})"

    if window.kind == "TUMBLE":
        start = f"({at} - {since(size)})"
        return start, f"({start} + {size})", f"({start} + {size - 1000})"
    step = window.sizes[0] * 1000
    if window.kind == "HOP":
        last = f"({at} - {since(step)})"
        starts = f"range({last}, {at} - {size}, -{step})"
        return _each(starts), _each(starts, size), _each(starts, size - 1000)
    start = f"({at} - {since(size)})"
    ends = f"range({at} - {since(step)} + {step}, {start} + {size} + 1, {step})"
    starts = f"list_transform({ends}, lambda e: {start})"
    return _each(starts), _each(ends), _each(ends, -1000)


def _each(items: str, more: int = 0) -> str:
    return f"unnest({items})" if not more else f"unnest(list_transform({items}, lambda m: m + {more}))"
