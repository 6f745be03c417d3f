"""Stateless steps over batches: Python functions row by row, SQL expressions and Arrow functions whole batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.clock.event_time import timestamps_of
from headwater.data import expressions
from headwater.data.batch import Batch, timestamp_array, timestamp_list
from headwater.data.rows import Row, decode, encode_rows, make_rows
from headwater.data.schema import Schema
from headwater.errors import RowError
from headwater.functions import Context, OutputTag, ProcessFunction
from headwater.graph.nodes import (
    ComputeNode,
    FilterNode,
    FlatMapNode,
    MapBatchesNode,
    MapNode,
    ProcessNode,
    SelectNode,
    StatefulProcessNode,
    WhereNode,
)
from headwater.measures import Measured, Metrics
from headwater.operators.stateless.failed_rows import FailedRows
from headwater.operators.user_code import open_function, own_copy, user_code_failed

Outputs = Iterable[tuple[str | None, Batch]]
SideRow = tuple[OutputTag, Any, int | None]
"""A row for a side output, with its timestamp."""


class MapOperator:
    """One row for each row."""

    def __init__(self, node: MapNode, step: str, row: type[Row]) -> None:
        self._node, self._step, self._row = node, step, row

    def apply(self, batch: Batch) -> Outputs:
        function, results = self._node.function, []
        failed = FailedRows(batch, self._node.failed_to, self._step)
        rows = iter(rows_of(batch.table, self._row))
        while True:
            try:
                for row in rows:
                    results.append(function(row))  # noqa: PERF401  extend takes StopIteration for the end
                break
            except BaseException as error:
                failed.add(len(results) + len(failed), error)
        return [(None, failed.results(results, failed.others(), self._node.schema)), *failed.output()]


class FlatMapOperator:
    """Any number of rows for each row."""

    def __init__(self, node: FlatMapNode, step: str, row: type[Row]) -> None:
        self._node, self._step, self._row = node, step, row

    def apply(self, batch: Batch) -> Outputs:
        function, results, ends = self._node.function, list[Any](), [0]
        failed = FailedRows(batch, self._node.failed_to, self._step)
        rows = iter(rows_of(batch.table, self._row))
        while True:
            try:
                for row in rows:
                    results.extend(function(row) or ())
                    ends.append(len(results))
                break
            except BaseException as error:
                failed.add(len(ends) - 1, error)
                del results[ends[-1] :]
                ends.append(len(results))
        return [(None, failed.results(results, _rows_of_results(ends), self._node.schema)), *failed.output()]


class FilterOperator:
    """The rows for which the function is true."""

    def __init__(self, node: FilterNode, step: str, row: type[Row]) -> None:
        self._node, self._step, self._row = node, step, row

    def apply(self, batch: Batch) -> Outputs:
        function, kept = self._node.function, []
        failed = FailedRows(batch, self._node.failed_to, self._step)
        rows = enumerate(rows_of(batch.table, self._row))
        at = -1
        while True:
            try:
                for at, row in rows:
                    if function(row):
                        kept.append(at)
                break
            except BaseException as error:
                failed.add(at, error)
        return [(None, batch.take(np.array(kept, np.int64))), *failed.output()]


class QueryOperator:
    """SQL expressions: select and where."""

    def __init__(self, node: SelectNode | WhereNode, step: str, row: type[Row]) -> None:
        self._query, self._schema, self._step = node.query, node.schema, step

    def apply(self, batch: Batch) -> Outputs:
        try:
            result, places = expressions.run(self._query, batch.table, self._schema.arrow)
        except BaseException as error:
            raise user_code_failed(error, self._step) from None
        return [(None, batch.results(result, places))]


class ComputeOperator:
    """Computed columns, of all rows or of some; the time of rows may be one of them."""

    def __init__(self, node: ComputeNode, step: str, row: type[Row]) -> None:
        self._node, self._step = node, step
        self._now_ms: int | None = None

    def begin(self, now_ms: int) -> None:
        """An epoch begins."""
        self._now_ms = now_ms if self._node.reads_clock else None

    def apply(self, batch: Batch) -> Outputs:
        node = self._node
        if node.picked:
            made = Batch(self._picked_and_computed(batch), batch.timestamps, kinds=batch.kinds)
        else:
            made = batch.results(*self._computed(batch, node.schema.arrow))
        if node.timestamp is not None:
            made.timestamps = timestamps_of(made.table, node.timestamp, self._step)
        return [(None, made)]

    def _picked_and_computed(self, batch: Batch) -> pa.Table:
        """Each row gives one: columns that stay as they are need not go through DuckDB."""
        node, schema = self._node, self._node.schema.arrow
        columns = {new: batch.table.column(old) for new, old in node.picked.items()}
        if node.query is not None:
            rest = pa.schema([field for field in schema if field.name not in columns])
            result, _ = self._computed(batch, rest)
            columns.update(zip(rest.names, result.columns, strict=True))
        return pa.table([columns[name] for name in schema.names], names=schema.names).cast(schema)

    def _computed(self, batch: Batch, schema: pa.Schema) -> tuple[pa.Table, npt.NDArray[np.int64]]:
        assert self._node.query is not None
        try:
            return expressions.run(self._node.query, batch.table, schema, self._now_ms)
        except BaseException as error:
            raise user_code_failed(error, self._step) from None


class MapBatchesOperator:
    """A function over Arrow tables."""

    def __init__(self, node: MapBatchesNode, step: str, row: type[Row]) -> None:
        self._function, self._schema, self._step, self._timestamp = node.function, node.schema, step, node.timestamp

    def apply(self, batch: Batch) -> Outputs:
        try:
            result = self._function(batch.table)
        except BaseException as error:
            raise user_code_failed(error, self._step) from None
        table = _conform(result, self._schema, self._step)
        if self._timestamp is not None:
            times = timestamps_of(table, self._timestamp, self._step, takes_none=True)
            return [(None, Batch(table, times))]
        if len(table) != len(batch):
            raise RowError.row_count(self._step, len(batch), len(table))
        return [(None, Batch(table, batch.timestamps))]


class ProcessCalls:
    """Calls a process function row by row, and encodes what it gives."""

    def __init__(
        self, function: ProcessFunction, node: ProcessNode | StatefulProcessNode, step: str, row: type[Row]
    ) -> None:
        self._function, self._step, self._row = function, step, row
        self._failed_to = node.failed_to if isinstance(node, ProcessNode) else None
        self._schema, self._outputs = node.schema, node.outputs

    def run(self, batch: Batch, context: Context) -> Outputs:
        """What the function gives for the rows."""
        emitted: list[Any] = []
        side: list[SideRow] = []
        ends, side_ends = [0], [0]
        context._side = side  # type: ignore[attr-defined]
        failed = FailedRows(batch, self._failed_to, self._step)
        process = self._function.process
        rows = zip(rows_of(batch.table, self._row), timestamp_list(batch.timestamps), strict=True)
        while True:
            try:
                for row, timestamp in rows:
                    context.timestamp = timestamp
                    emitted.extend(process(row, context) or ())
                    ends.append(len(emitted))
                    side_ends.append(len(side))
                break
            except BaseException as error:
                failed.add(len(ends) - 1, error)
                del emitted[ends[-1] :], side[side_ends[-1] :]
                ends.append(len(emitted))
                side_ends.append(len(side))
        main = failed.results(emitted, _rows_of_results(ends), self._schema)
        if failed:
            side = [row for at, row in zip(_rows_of_results(side_ends), side, strict=True) if at not in failed]
        return [(None, main), *side_batches(side, self._outputs, self._step), *failed.output()]


class ProcessOperator:
    """A stateless process function with side outputs. It opens with the first rows."""

    def __init__(self, node: ProcessNode, step: str, row: type[Row]) -> None:
        self._function = own_copy(node.function, step)  # each place has its own
        self._step, self._is_open = step, False
        self._calls = ProcessCalls(self._function, node, step, row)
        self._metrics = Metrics()

    def apply(self, batch: Batch) -> Outputs:
        if not self._is_open:
            open_function(self._function, self._step)
            self._is_open = True
        context = Context()
        context.metrics = self._metrics
        return self._calls.run(batch, context)

    def measured(self) -> dict[str, Measured]:
        return self._metrics.take()


def _rows_of_results(ends: list[int]) -> npt.NDArray[np.int64]:
    """The place of the row that each result is of, given where the results of each row end."""
    return np.repeat(np.arange(len(ends) - 1), np.diff(ends))


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


def _conform(result: Any, schema: Schema, step: str) -> pa.Table:
    if isinstance(result, pa.RecordBatch):
        result = pa.Table.from_batches([result])
    if not isinstance(result, pa.Table) or sorted(result.column_names) != sorted(schema.names):
        got = result.schema.names if isinstance(result, pa.Table) else type(result).__name__
        raise RowError.wrong_result(
            step, f"a table with {', '.join(schema.names)}", got, "return a pyarrow.Table with these columns"
        )
    try:
        return result.select(schema.names).cast(schema.arrow)
    except (pa.ArrowException, ValueError) as error:
        raise RowError.wrong_result(step, f"a table that fits '{schema}'", error, "cast its columns") from None
