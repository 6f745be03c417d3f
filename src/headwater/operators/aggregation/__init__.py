"""The built-in aggregates of a step: from rows to accumulators, from those to fewer, and from those to results."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.aggregates.declared import Aggregate, refuse_taking_back, result_fields
from headwater.data.schema import Schema
from headwater.operators.aggregation.kernel import Groups, Kernel, Settles
from headwater.operators.aggregation.kernels import Use, kernel_for

_LEFT = "@left"
"""The accumulator column with the number of rows that are left; users' names do not start so."""


class Aggregation:
    """The built-in aggregates of a step, together: Arrow in, Arrow out, never a Python call per row.

    With `takes_back`, rows may take others back: the results are those of the rows that are left, and accumulators hold
    what that needs, and how many rows are left, for which alone there may be no aggregates. Rows are compared by the
    columns that an aggregate reads. One that takes back what is not there yet is owed: it takes the next one that comes.

    The same input gives the same bytes. However rows are cut into partials, merging these in order of arrival gives the
    result of all rows at once, up to the rounding of floats. A sum that overflows is an error even if a later row would
    bring it back.
    """

    fields: list[pa.Field]
    """The accumulator columns, such as `total.sum`."""
    results: list[pa.Field]
    """The result columns, named as the aggregates are."""

    def __init__(
        self, aggregates: Mapping[str, Aggregate], schema: Schema, step: str, *, takes_back: bool = False
    ) -> None:
        if takes_back:
            refuse_taking_back(aggregates, step)
        self.results = result_fields(aggregates, schema, step) if aggregates or not takes_back else []
        self.fields = []
        self._takes_back = takes_back
        self._kernels: list[tuple[Aggregate, Kernel, slice]] = []
        for field, aggregate in zip(self.results, aggregates.values(), strict=True):
            types = [schema.field(name).type for name in aggregate.columns]
            kernel = kernel_for(Use(aggregate, types, field.type, step), takes_back=takes_back)
            start = len(self.fields)
            self.fields += [part.with_name(f"{field.name}.{part.name}") for part in kernel.fields]
            self._kernels.append((aggregate, kernel, slice(start, len(self.fields))))
        if takes_back:
            self.fields.append(pa.field(_LEFT, pa.int64(), nullable=False))
        self._schema = pa.schema(self.fields)
        self._no_rows = schema.arrow.empty_table()

    def partial(
        self,
        table: pa.Table,
        groups: npt.NDArray[np.int64],
        count: int,
        adds: npt.NDArray[np.bool_] | None = None,
    ) -> pa.Table:
        """The accumulators of rows: row g of the result is that of the rows whose group is g, from 0 to count - 1.

        `adds` says which rows add; the others take one back. Without it all add, as they do where nothing is taken back.
        """
        shared = Groups(groups, count, np.where(adds, 1, -1) if self._takes_back and adds is not None else None)
        columns = {name: _flat(table.column(name)) for aggregate, _, _ in self._kernels for name in aggregate.columns}
        arrays: list[pa.Array] = []
        for aggregate, kernel, _ in self._kernels:
            arrays += kernel.partial([columns[name] for name in aggregate.columns], shared)
        if self._takes_back:
            arrays.append(pa.array(shared.net()))
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def merge(self, partials: pa.Table, groups: npt.NDArray[np.int64], count: int) -> pa.Table:
        """The accumulators of accumulators; those of one group are in order of arrival."""
        shared = Groups(groups, count)
        columns = [_flat(partials.column(field.name)) for field in self.fields]
        arrays: list[pa.Array] = []
        for _, kernel, own in self._kernels:
            arrays += kernel.merge(columns[own], shared)
        if self._takes_back:
            arrays.append(pa.array(shared.add(columns[-1].to_numpy())))
        return pa.Table.from_arrays(arrays, schema=self._schema)

    def result(self, partials: pa.Table) -> list[pa.Array]:
        """An array for each result column, with a value for each row of accumulators."""
        columns = [_flat(partials.column(field.name)) for field in self.fields]
        return [kernel.result(columns[own]) for _, kernel, own in self._kernels]

    def left(self, partials: pa.Table) -> npt.NDArray[np.int64]:
        """How many rows are left in each row of accumulators that take back; below zero where some are owed."""
        left: npt.NDArray[np.int64] = partials.column(_LEFT).to_numpy()
        return left

    def settle(self, partials: pa.Table) -> pa.Table:
        """Accumulators without the rows that were taken back; for those before which no others can come, to be kept."""
        if not self._takes_back:
            return partials
        columns = [_flat(partials.column(field.name)) for field in self.fields]
        for _, kernel, own in self._kernels:
            if isinstance(kernel, Settles):
                columns[own] = kernel.settle(columns[own])
        return pa.Table.from_arrays(columns, schema=self._schema)

    def empty(self) -> pa.Table:
        """One row: the accumulators of no rows at all."""
        return self.partial(self._no_rows, np.empty(0, np.int64), 1)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
