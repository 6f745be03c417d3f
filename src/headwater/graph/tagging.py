"""Two inputs as one stream, whose rows have a key and, as one column each, a row of the left or of the right input.

This is how windows over both work: they see one stream, and what is computed takes it apart again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pyarrow as pa

from headwater.data.rows import decode, encode, make_rows
from headwater.data.schema import Schema
from headwater.functions import Emitted, ProcessWindowFunction, WindowContext
from headwater.graph.edges import LEFT, RIGHT, Key
from headwater.graph.flow import Flow
from headwater.graph.graph import Graph
from headwater.graph.nodes.columns import MapBatchesNode
from headwater.graph.windowed import WindowedPair

_KEY = "key"


def tagged(graph: Graph, pair: WindowedPair) -> Flow:
    """Both inputs as one flow, by key."""
    rows = pair.rows
    sides = (LEFT, "left", pair.left), (RIGHT, "right", pair.right)
    left, right = (
        graph.add(
            MapBatchesNode.of(
                flow.in_place(),
                function=Tag(number, flow.schema, flow.key, rows, pair.step),
                schema=rows,
                name=f"{pair.step}_{side}",
            )
        )
        for number, side, flow in sides
    )
    both = left.union(right)
    return both.keyed(Key.of(both.schema, (_KEY,)))


@dataclass(frozen=True)
class Tag:
    """Makes rows of one input rows of both."""

    side: int
    rows: Schema
    key: Key
    schema: Schema
    step: str

    def __call__(self, table: pa.Table) -> pa.Table:
        key, left, right = self.schema.arrow
        own, other = (left, right) if self.side == LEFT else (right, left)
        columns = {
            _KEY: self._keys(table, key),
            own.name: pa.StructArray.from_arrays(list(map(_flat, table.columns)), fields=list(own.type)),
            other.name: pa.nulls(len(table), other.type),
        }
        return pa.table([columns[field.name] for field in self.schema.arrow], schema=self.schema.arrow)

    def _keys(self, table: pa.Table, field: pa.Field) -> pa.Array:
        """The keys, under the names of the left input's."""
        key = self.key
        if key.function is not None:
            rows = make_rows(self.rows.row, [decode(column) for column in table.columns])
            return encode([key.function(row) for row in rows], field, self.step)
        columns = [_flat(table.column(name)) for name in key.columns]
        if not pa.types.is_struct(field.type):
            return columns[0]
        is_null = None
        if len(columns) == 1 and pa.types.is_struct(columns[0].type):
            is_null, columns = columns[0].is_null(), columns[0].flatten()
        return pa.StructArray.from_arrays(columns, fields=list(field.type), mask=is_null)


class JoinFunction(ProcessWindowFunction):
    """Gives something for each pair of rows, left rows first in order, and for rows without a pair as `how` says.

    Rows whose key has a null have no pair.
    """

    def __init__(self, pair: Callable[[Any, Any], Any], how: str = "inner") -> None:
        self._pair, self._how = pair, how

    def process(self, elements: list[Any], ctx: WindowContext) -> Emitted:
        found = (self._pair(left, right) for left, right in self._met(*_apart(elements), ctx.key))
        return [row for row in found if row is not None]

    def _met(self, lefts: list[Any], rights: list[Any], key: Any) -> Iterable[tuple[Any, Any]]:
        """What is shown together; None stands for the row that is missing."""
        if lefts and rights and not _has_null(key):
            if self._how == "anti":
                return []
            return product(lefts, [None] if self._how == "semi" else rights)
        alone = [(left, None) for left in lefts] if self._how in ("left", "full", "anti") else []
        return [*alone, *((None, right) for right in rights)] if self._how in ("right", "full") else alone


class CoGroupFunction(ProcessWindowFunction):
    """Gives what a function of the rows of both sides gives."""

    def __init__(self, function: Callable[[list[Any], list[Any], WindowContext], Emitted]) -> None:
        self._function = function

    def process(self, elements: list[Any], ctx: WindowContext) -> Emitted:
        return self._function(*_apart(elements), ctx)


@dataclass(frozen=True)
class SideBySide:
    """A pair of rows as one row, with some of the right one's columns; those of a row that is missing are null."""

    left: tuple[int | None, ...]
    """For each left column, the right one that stands for it where there is no left row: a key shown once."""
    right: tuple[int, ...]
    """The right columns that are shown."""

    @classmethod
    def of(cls, left: Schema, right: Schema, shown: tuple[str, ...]) -> SideBySide:
        """For rows of these schemas, with these of the right columns."""
        names = right.names
        hidden = {name: place for place, name in enumerate(names) if name not in shown}
        return cls(tuple(hidden.get(name) for name in left.names), tuple(map(names.index, shown)))

    def __call__(self, left: tuple[Any, ...] | None, right: tuple[Any, ...] | None) -> tuple[Any, ...]:
        if left is None:
            assert right is not None
            left = tuple(None if place is None else right[place] for place in self.left)
        return (*left, *(None if right is None else right[place] for place in self.right))


def _apart(elements: list[Any]) -> tuple[list[Any], list[Any]]:
    lefts = [element.left for element in elements if element.left is not None]
    return lefts, [element.right for element in elements if element.right is not None]


def _has_null(key: Any) -> bool:
    return key is None or (isinstance(key, tuple) and any(map(_has_null, key)))


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
