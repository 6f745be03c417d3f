"""Aggregates: over all rows so far, over windows, and DISTINCT."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

from headwater.aggregates import Aggregate as Kernel
from headwater.aggregates import count
from headwater.data.functions.terms import Term
from headwater.data.functions.types import quoted
from headwater.graph.flow import Flow
from headwater.graph.nodes import DistinctNode, Node, RunningNode, SessionNode, WindowNode
from headwater.graph.windowed import Windowed
from headwater.sql.build.builder import Builder, as_they_are, builds
from headwater.sql.errors import SqlError
from headwater.sql.relations import (
    PROCESSING,
    Aggregate,
    Distinct,
    Filter,
    Project,
    Relation,
    View,
    Window,
    WindowTable,
    unused,
)
from headwater.windows.assigners import WindowAssigner, cumulate, processing_time, sliding, tumbling

MOMENT = dt.timedelta(milliseconds=1)
"""The size of the windows in which rows meet that all have the last moment of their own window as their time."""


@builds(Distinct)
def _distinct(builder: Builder, relation: Distinct) -> Flow:
    flow = builder.flow(relation.input)
    names = tuple(relation.names)
    if not relation.updates:
        builder.keyed(flow, names, "DISTINCT")
        return builder.add(DistinctNode.of(flow, by=names, ttl=builder.ttl), "distinct")
    rows = unused("rows", names)
    keyed = builder.keyed(flow, names, "DISTINCT")
    node = RunningNode.of(keyed, aggregates={rows: count()}, updates=True, ttl=builder.ttl)
    return builder.compute(builder.add(node, "distinct"), as_they_are(relation), kind="columns")


@builds(Aggregate)
def _aggregate(builder: Builder, relation: Aggregate) -> Flow:
    if relation.windowed is not None:
        return _windowed(builder, relation, relation.windowed)
    flow = builder.flow(relation.input)
    keys = relation.keys
    if not keys:
        flow, constant = builder.in_one_place(flow)
        keys = (constant,)
    kernels = {call.name: call.kernel for call in relation.calls} or {unused("rows", relation.names): count()}
    keyed = builder.keyed(flow, keys, "GROUP BY")
    node = RunningNode.of(keyed, aggregates=kernels, updates=True, ttl=builder.ttl)
    return builder.compute(builder.add(node, "aggregate"), as_they_are(relation), kind="columns")


def _windowed(builder: Builder, relation: Aggregate, window: Window) -> Flow:
    shown = {window.start, window.end, *([window.bound] if window.bound else [])}
    source = None if window.is_closed else _without(relation.input, shown)
    if source is not None:
        flow, keys = builder.flow(source), relation.keys
        assigner = None if window.kind == "SESSION" else _assigner_of(window)
        if window.kind == "SESSION" and {*window.partition} != {*relation.keys}:
            raise SqlError.not_supported(
                None,
                f"a SESSION partitioned by ({', '.join(window.partition)}) and grouped by ({', '.join(relation.keys)})",
                "write the same columns behind PARTITION BY and beside the window in GROUP BY",
            )
    else:
        flow, keys = at_last_moment(builder, relation.input, window), (*relation.keys, window.start, window.end)
        assigner = tumbling(MOMENT)
    flow = builder.keyed(flow, keys, "GROUP BY") if keys else flow.together()
    kernels = {call.name: call.kernel for call in relation.calls} or {unused("rows", relation.names): count()}
    renamed = {name: f"{name}_" if name in ("window_start", "window_end") else name for name in kernels}
    if source is None:
        flow, keys = _apart(builder, flow, relation, keys)
    made = builder.add(
        _window_node(flow, {renamed[name]: kernel for name, kernel in kernels.items()}, window, assigner, keys),
        "window_aggregate",
    )
    columns: dict[str, Term] = {}
    start, end = ("window_start", "window_end") if source is not None else (_KEPT_START, _KEPT_END)
    for field in relation.fields:
        if field.name == window.start:
            text = f"({quoted(start)} AT TIME ZONE 'UTC')" if source is not None else quoted(start)
        elif field.name == window.end:
            text = f"({quoted(end)} AT TIME ZONE 'UTC')" if source is not None else quoted(end)
        elif field.name == (window.bound or "window_time"):
            moment = f"({quoted(end)} - INTERVAL '1 millisecond')"
            if source is not None:
                text = moment if field.type.kind == "timestamp_ltz" else f"({moment} AT TIME ZONE 'UTC')"
            else:
                text = f"({moment} AT TIME ZONE 'UTC')" if field.type.kind == "timestamp_ltz" else moment
        else:
            text = quoted(renamed.get(field.name, field.name))
        columns[field.name] = Term(field.type, text)
    return builder.compute(made, columns, kind="columns")


def _window_node(
    flow: Flow, kernels: dict[str, Kernel], window: Window, assigner: WindowAssigner | None, keys: tuple[str, ...]
) -> Node:
    """Aggregates in windows that are assigned, or in sessions."""
    if assigner is not None:
        return WindowNode.of_aggregates(Windowed(flow=flow, assigner=assigner), aggregates=kernels)
    gap = dt.timedelta(milliseconds=window.sizes[0])
    return SessionNode.of(flow, gap=gap, partition_by=keys, time=window.domain, aggregates=kernels)


_KEPT_START, _KEPT_END = "start_of_window", "end_of_window"
"""Names of the columns of a row's own window, where the moment they meet in has the usual ones."""


def _apart(builder: Builder, flow: Flow, relation: Aggregate, keys: tuple[str, ...]) -> tuple[Flow, tuple[str, ...]]:
    """The rows with other names for the columns of their window."""
    window = relation.windowed
    assert window is not None
    renamed = {window.start: _KEPT_START, window.end: _KEPT_END}
    plain = flow.in_place()
    columns = {renamed.get(name, name): term for name, term in as_they_are(relation.input).items()}
    grown = builder.compute(plain, columns, kind="columns")
    new = tuple(renamed.get(key, key) for key in keys)
    return builder.keyed(grown, new, "GROUP BY"), new


def at_last_moment(builder: Builder, relation: Relation, window: Window) -> Flow:
    """Rows whose time is the last moment of their window."""
    if window.is_closed and relation.row_time is not None:
        return builder.flow(relation)
    assert window.bound is not None or window.end
    flow = builder.flow(relation)
    name = unused("last_moment", relation.names)
    moment = relation.by_name[window.end]
    text = f"({quoted(window.end)} - INTERVAL '1 millisecond')"
    columns = {**as_they_are(relation), name: Term(moment.type, text)}
    timed = builder.compute(flow, columns, timestamp=name, kind="time")
    return builder.compute(timed, as_they_are(relation), kind="columns")


def _assigner_of(window: Window) -> WindowAssigner:
    """The windows of streams that SQL's windows are."""
    sizes = [dt.timedelta(milliseconds=size) for size in window.sizes]
    offset = dt.timedelta(milliseconds=window.offset % max(1, window.sizes[0]))
    if window.kind == "TUMBLE":
        made: WindowAssigner = tumbling(sizes[0], offset)
    elif window.kind == "HOP":
        made = sliding(sizes[1], sizes[0], offset)
    elif window.kind == "CUMULATE":
        made = cumulate(sizes[0], sizes[1], dt.timedelta(milliseconds=window.offset % window.sizes[1]))
    else:
        raise AssertionError(f"{window.kind} has no windows that are the same for all keys")
    return processing_time(made) if window.domain == PROCESSING else made


def _without(relation: Relation, hidden: set[str]) -> Relation | None:
    """The relation without the columns of windows, over what those are made of; None where something reads them."""
    if isinstance(relation, WindowTable):
        is_timed = relation.made.domain == PROCESSING or relation.input.row_time == relation.made.time
        return relation.input if is_timed else None
    if isinstance(relation, View):
        found = _without(relation.input, hidden)
        return None if found is None else View(relation.name, found)
    if isinstance(relation, Filter):
        found = None if relation.condition.columns & hidden else _without(relation.input, hidden)
        return None if found is None else replace(relation, input=found)
    if isinstance(relation, Project):
        window = relation.input.window
        if window is None:
            return None
        below = {window.start, window.end, *([window.bound] if window.bound else [])}
        items = tuple((name, scalar) for name, scalar in relation.items if scalar.column not in below)
        if any(scalar.columns & below for _, scalar in items):
            return None
        found = _without(relation.input, below)
        return found if found is None or not items else Project(found, items)
    return None
