"""Stateless steps over batches: Python functions row by row, SQL expressions and Arrow functions whole batches."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from headwater import expressions
from headwater.batch import Batch, timestamp_array, timestamp_list
from headwater.clock.event_time import timestamps_of
from headwater.errors import HeadwaterError, RowError
from headwater.functions import Context, OutputTag, ProcessFunction
from headwater.graph.nodes import (
    FilterNode,
    FlatMapNode,
    MapBatchesNode,
    MapNode,
    Node,
    ProcessNode,
    SelectNode,
    WhereNode,
)
from headwater.operators.user_code import open_function, user_code_failed
from headwater.rows import Row, decode, encode_rows, make_rows
from headwater.schema import Schema

Outputs = Iterable[tuple[str | None, Batch]]
SideRow = tuple[OutputTag, Any, int | None]
"""A row for a side output, with its timestamp."""


class MapOperator:
    """One row for each row."""

    def __init__(self, node: MapNode, step: str, row: type[Row]) -> None:
        self._function, self._schema, self._step, self._row = node.function, node.schema, step, row

    def apply(self, batch: Batch) -> Outputs:
        results = []
        at = -1
        rows = rows_of(batch.table, self._row)
        try:
            for at, row in enumerate(rows):  # noqa: B007  `at` is read when the function raises
                results.append(self._function(row))
        except Exception as error:
            raise _failed(error, self._step, batch, at) from None
        return [(None, Batch(encode_rows(results, self._schema.arrow, self._step), batch.timestamps))]


class FlatMapOperator:
    """Any number of rows for each row."""

    def __init__(self, node: FlatMapNode, step: str, row: type[Row]) -> None:
        self._function, self._schema, self._step, self._row = node.function, node.schema, step, row

    def apply(self, batch: Batch) -> Outputs:
        results: list[Any] = []
        counts = []
        at = -1
        try:
            for at, row in enumerate(rows_of(batch.table, self._row)):  # noqa: B007
                before = len(results)
                results.extend(self._function(row) or ())
                counts.append(len(results) - before)
        except Exception as error:
            raise _failed(error, self._step, batch, at) from None
        table = encode_rows(results, self._schema.arrow, self._step)
        return [(None, Batch(table, np.repeat(batch.timestamps, counts)))]


class FilterOperator:
    """The rows for which the function is true."""

    def __init__(self, node: FilterNode, step: str, row: type[Row]) -> None:
        self._function, self._step, self._row = node.function, step, row

    def apply(self, batch: Batch) -> Outputs:
        kept = []
        at = -1
        try:
            for at, row in enumerate(rows_of(batch.table, self._row)):
                if self._function(row):
                    kept.append(at)
        except Exception as error:
            raise _failed(error, self._step, batch, at) from None
        return [(None, batch.take(np.array(kept, np.int64)))]


class QueryOperator:
    """SQL expressions: select and where."""

    def __init__(self, node: SelectNode | WhereNode, step: str, row: type[Row]) -> None:
        self._query, self._schema, self._step = node.query, node.schema, step

    def apply(self, batch: Batch) -> Outputs:
        table = batch.table.append_column(expressions.TIMESTAMP_COLUMN, pa.array(batch.timestamps))
        try:
            result = expressions.run(self._query, table, self._schema.arrow)
        except Exception as error:
            raise user_code_failed(error, self._step) from None
        timestamps = result.column(expressions.TIMESTAMP_COLUMN).to_numpy()
        return [(None, Batch(result.drop_columns([expressions.TIMESTAMP_COLUMN]), timestamps))]


class MapBatchesOperator:
    """A function over Arrow tables."""

    def __init__(self, node: MapBatchesNode, step: str, row: type[Row]) -> None:
        self._function, self._schema, self._step, self._timestamp = node.function, node.schema, step, node.timestamp

    def apply(self, batch: Batch) -> Outputs:
        try:
            result = self._function(batch.table)
        except Exception as error:
            raise user_code_failed(error, self._step) from None
        table = _conform(result, self._schema, self._step)
        if self._timestamp is not None:
            return [(None, Batch(table, timestamps_of(table, self._timestamp, self._step)))]
        if len(table) != len(batch):
            raise RowError.row_count(self._step, len(batch), len(table))
        return [(None, Batch(table, batch.timestamps))]


class ProcessCalls:
    """Calls a process function row by row, and encodes what it gives."""

    def __init__(self, function: ProcessFunction, node: Node, step: str, row: type[Row]) -> None:
        self._function, self._step, self._row = function, step, row
        self._schema, self._outputs = node.schema, node.outputs

    def run(self, batch: Batch, context: Context) -> Outputs:
        """What the function gives for the rows."""
        emitted: list[Any] = []
        times: list[int | None] = []
        side: list[SideRow] = []
        context._side = side  # type: ignore[attr-defined]
        process = self._function.process
        try:
            for row, timestamp in zip(rows_of(batch.table, self._row), timestamp_list(batch.timestamps), strict=True):
                context.timestamp = timestamp
                for result in process(row, context) or ():
                    emitted.append(result)
                    times.append(timestamp)
        except Exception as error:
            raise user_code_failed(error, self._step, timestamp=context.timestamp) from None
        main = Batch(encode_rows(emitted, self._schema.arrow, self._step), timestamp_array(times))
        return [(None, main), *side_batches(side, self._outputs, self._step)]


class ProcessOperator:
    """A stateless process function with side outputs. It opens with the first rows."""

    def __init__(self, node: ProcessNode, step: str, row: type[Row]) -> None:
        self._function = copy.deepcopy(node.function)  # each place has its own
        self._step, self._is_open = step, False
        self._calls = ProcessCalls(self._function, node, step, row)

    def apply(self, batch: Batch) -> Outputs:
        if not self._is_open:
            open_function(self._function, self._step)
            self._is_open = True
        return self._calls.run(batch, Context())


def side_batches(side: list[SideRow], read: Mapping[str, Schema], step: str) -> Outputs:
    """What was sent to side outputs, one batch per output, in the order of its first row; `read` is what readers expect."""
    by_tag: dict[OutputTag, tuple[list[Any], list[int | None]]] = {}
    for tag, row, timestamp in side:
        rows, times = by_tag.setdefault(tag, ([], []))
        rows.append(row)
        times.append(timestamp)
    for tag, (rows, times) in by_tag.items():
        if read.get(tag.name, tag.schema) != tag.schema:
            raise RowError.other_tag(step, tag.name, str(tag.schema), str(read[tag.name]))
        yield tag.name, Batch(encode_rows(rows, tag.schema.arrow, f"{step}[{tag.name}]"), timestamp_array(times))


def rows_of(table: pa.Table, row: type[Row]) -> Iterable[Row]:
    """The rows of a table as named tuples."""
    return make_rows(row, [decode(column) for column in table.columns])


def _failed(error: Exception, step: str, batch: Batch, at: int) -> HeadwaterError:
    timestamp = timestamp_list(batch.timestamps[at : at + 1])[0] if at >= 0 else None
    return user_code_failed(error, step, timestamp=timestamp)


def _conform(result: Any, schema: Schema, step: str) -> pa.Table:
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if not isinstance(result, pa.Table) or sorted(result.column_names) != sorted(schema.names):
        got = result.schema.names if isinstance(result, pa.Table) else type(result).__name__
        raise RowError(f"step {step!r}: the function must return a table with {', '.join(schema.names)}; got {got}")
    try:
        return result.select(schema.names).cast(schema.arrow)
    except (pa.ArrowException, ValueError) as error:
        raise RowError(f"step {step!r}: the function's table does not fit '{schema}': {error}") from None
