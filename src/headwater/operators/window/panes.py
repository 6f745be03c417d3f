"""From firings to rows: key, window and pane are put to what was computed, and what was said before is taken back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.batch import MAX_TIMESTAMP, Batch, Timestamps, concat
from headwater.data.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from headwater.data.rows import decode, encode_rows
from headwater.descriptors import ListState, StateDeclaration, ValueState, state_of_type
from headwater.graph.nodes import WindowNode
from headwater.graph.windowed import Panes
from headwater.operators.grouping import Codes
from headwater.operators.keys import key_arrays
from headwater.operators.window.contents import Point, Results
from headwater.operators.window.scope import Scope
from headwater.windows.assigners import Window


@dataclass
class Firing:
    """A window fires."""

    key: Any
    window: Window
    state: Scope
    kind: str
    held: Any
    rows: list[Any] | None = None
    """What came out, once it is known."""


@dataclass
class Merged:
    """The state of windows went into another's."""

    state: Scope
    absorbed: list[Scope]


@dataclass
class Cleared:
    """A window is gone."""

    state: Scope


Event = Firing | Merged | Cleared


@dataclass
class Fired:
    """The firings that the rows of a batch led to, in order, of any number of windows."""

    batch: Batch
    rows: Codes
    """The row that led to each."""
    of: Codes
    """The window of each, by its place in the lists that follow."""
    results: Results
    scopes: list[Scope]
    kinds: list[str]
    """What the firings of each window are."""

    def with_rows(self) -> Fired:
        """The firings of windows that have rows."""
        if not self.results.are_empty.any():
            return self
        some = ~self.results.are_empty
        columns = [column.filter(pa.array(some)) for column in self.results.columns]
        results = Results(columns, np.zeros(int(some.sum()), np.bool_))
        return replace(self, rows=self.rows[some], of=self.of[some], results=results)


@dataclass
class _Emitted:
    row: tuple[Any, ...]
    window: Window
    pane: tuple[str, int]
    row_kind: int
    key: Any


class PaneBook:
    """Numbers the firings of each window and remembers, for retracting panes, what the last one said."""

    index: Any
    said: Any

    def __init__(self, node: WindowNode, step: str) -> None:
        self._panes: Panes = node.panes
        self._node, self._step = node, step
        self._names = tuple(node.value.names)
        self._value = node.value.arrow
        self._out: list[_Emitted] = []
        self._batches: list[Batch] = []

    @property
    def is_needed(self) -> bool:
        """Whether windows have a memory of their firings: results or functions are told about them."""
        return self._panes.has_info or self._panes.mode == "retracting" or self._node.process is not None

    def declarations(self) -> list[StateDeclaration]:
        if not self.is_needed:
            return []
        index = ValueState("@pane", "int", default=0)
        index.attribute = "index"
        dtype = pa.struct(
            [
                pa.field("start", pa.int64()),
                pa.field("end", pa.int64()),
                pa.field("kind", pa.string()),
                pa.field("index", pa.int32()),
                pa.field("row", pa.struct(list(self._value))),
            ]
        )
        said = state_of_type(ListState("@said", "boolean"), dtype)
        said.attribute = "said"
        return [index, said] if self._panes.mode == "retracting" else [index]

    def write(self, event: Event, point: Point) -> None:
        """What happened to a window next; the cursor is left at it."""
        if isinstance(event, Firing):
            self._out += self._fired(event, point)
        elif self.is_needed:
            self._follow(event, point)

    def take(self) -> Batch | None:
        """The rows of all firings since the last call, in order."""
        batches, self._batches = self._batches, []
        if self._out:
            batches.append(self._batch(self._out))
            self._out = []
        return concat(batches) if batches else None

    def fire(self, fired: Fired, point: Point) -> None:
        """Many windows fire; only those whose last results are taken back go one by one."""
        if not len(fired.of):
            return
        if self._panes.mode == "retracting":
            values = zip(*(decode(column) for column in fired.results.columns), strict=True)
            for place, value, is_empty in zip(fired.of.tolist(), values, fired.results.are_empty, strict=True):
                key, *edges = scope = fired.scopes[place]
                rows = [] if is_empty else [value]
                self.write(Firing(key, Window(*edges), scope, fired.kinds[place], None, rows), point)
            return
        fired = fired.with_rows()
        edges = np.array([scope[1:] for scope in fired.scopes], np.int64)[fired.of]
        columns = dict(zip(self._names, fired.results.columns, strict=True))
        if self._node.assigner.is_bounded:
            columns |= {"window_start": moments(edges[:, 0]), "window_end": moments(edges[:, 1])}
        names, rows = key_columns(self._node), pa.array(fired.rows)
        columns |= {n: k.take(rows) for n, k in zip(names, key_arrays(fired.batch, self._node.key), strict=True)}
        if self._panes.has_info:
            columns["pane_kind"] = pa.array(np.array(fired.kinds, object)[fired.of], pa.string())
            columns["pane_index"] = pa.array(self._numbers(fired, point), pa.int32())
        table = pa.Table.from_arrays([columns[n] for n in self._node.schema.names], schema=self._node.schema.arrow)
        times = np.where(edges[:, 1] < MAX_TIMESTAMP, edges[:, 1] - 1, MAX_TIMESTAMP)
        self._batches.append(Batch(table, times))

    def _numbers(self, fired: Fired, point: Point) -> Codes:
        """The number of each firing among those of its window."""
        counts = np.bincount(fired.of, minlength=len(fired.scopes))
        firsts = np.zeros(len(counts), np.int64)
        for place in np.flatnonzero(counts).tolist():
            point(fired.scopes[place])
            firsts[place] = self.index.get()
            self.index.set(int(firsts[place] + counts[place]))
        order = np.argsort(fired.of, kind="stable")
        numbers = np.empty_like(order)
        numbers[order] = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
        return numbers + firsts[fired.of]

    def _fired(self, firing: Firing, point: Point) -> list[_Emitted]:
        rows = [self._tuple(row) for row in firing.rows or ()]
        if not rows and self._node.process is None and self._panes.mode != "retracting":
            return []  # all that the window had was taken back, and nobody is told
        pane = (firing.kind, 0)
        if not self.is_needed:
            return [_Emitted(row, firing.window, pane, INSERT, firing.key) for row in rows]
        point(firing.state)
        pane = (firing.kind, self.index.get())
        if self._panes.mode != "retracting":
            self.index.set(pane[1] + 1)
            return [_Emitted(row, firing.window, pane, INSERT, firing.key) for row in rows]
        before = self.said.get()
        if [(one.start, one.end, tuple(one.row)) for one in before] == [(*firing.window, row) for row in rows]:
            return []
        self.index.set(pane[1] + 1)
        self.said.update([(*firing.window, *pane, row) for row in rows])
        kind = UPDATE_AFTER if before else INSERT
        gone = UPDATE_BEFORE if rows else DELETE
        taken_back = [
            _Emitted(tuple(o.row), Window(o.start, o.end), (o.kind, o.index), gone, firing.key) for o in before
        ]
        return taken_back + [_Emitted(row, firing.window, pane, kind, firing.key) for row in rows]

    def _follow(self, event: Merged | Cleared, point: Point) -> None:
        if isinstance(event, Cleared):
            point(event.state)
            self.index.clear()
            if self._panes.mode == "retracting":
                self.said.clear()
            return
        said: list[Any] = []
        highest = 0
        for scope in event.absorbed:
            point(scope)
            highest = max(highest, self.index.get())
            self.index.clear()
            if self._panes.mode == "retracting":
                said += self.said.get()
                self.said.clear()
        point(event.state)
        if highest > self.index.get():
            self.index.set(highest)
        if said:
            self.said.add_all(said)

    def _tuple(self, row: Any) -> tuple[Any, ...]:
        if isinstance(row, dict) and row.keys() == set(self._names):
            return tuple(row[name] for name in self._names)
        return tuple(row) if isinstance(row, tuple | list) else row

    def _batch(self, out: list[_Emitted]) -> Batch:
        node = self._node
        table = encode_rows([one.row for one in out], self._value, self._step)
        columns = dict(zip(table.column_names, table.columns, strict=True))
        if "window_start" in node.schema.names and "window_start" not in columns:
            columns["window_start"] = moments(np.array([one.window.start for one in out], np.int64))
            columns["window_end"] = moments(np.array([one.window.end for one in out], np.int64))
        columns |= self._key_columns(out, columns)
        if self._panes.has_info and node.process is None:
            columns["pane_kind"] = pa.array([one.pane[0] for one in out], pa.string())
            columns["pane_index"] = pa.array([one.pane[1] for one in out], pa.int32())
        arrays = [columns[name] for name in node.schema.names]
        times = np.array([one.window.last for one in out], np.int64)
        kinds = None if node.changelog.is_append_only else np.array([one.row_kind for one in out], np.int8)
        return Batch(pa.Table.from_arrays(arrays, schema=node.schema.arrow), times, kinds=kinds)

    def _key_columns(self, out: list[_Emitted], known: dict[str, Any]) -> dict[str, pa.Array]:
        names = [name for name in key_columns(self._node) if name not in known]
        if not names:
            return {}
        keys = [one.key if len(self._node.key.columns) > 1 else (one.key,) for one in out]
        schema = pa.schema([self._node.schema.field(name) for name in names])
        table = encode_rows([tuple(key) for key in keys], schema, self._step)
        return dict(zip(names, table.columns, strict=True))


def key_columns(node: WindowNode) -> list[str]:
    """The columns of a result that show its key: a function's result is shown as `key`, no key not at all."""
    if node.process is not None or node.reduce is not None:
        return []
    if node.key.function is not None:
        return ["key"]
    return list(node.key.columns)


def moments(millis: Timestamps, absent: pa.Array | None = None) -> pa.Array:
    """Times as a column of timestamps, null where absent."""
    micros = pa.array(millis * 1000).view(pa.timestamp("us", "UTC"))
    return micros if absent is None else pc.if_else(absent, None, micros)
