"""From rows to accumulators by key and slice: the first half of a sliced window, in the window's step or before the shuffle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.aggregates.declared import is_in_any_order
from headwater.data.batch import Batch, Timestamps, flat
from headwater.data.row_kinds import adds
from headwater.graph.nodes import WindowNode
from headwater.operators.aggregation import Aggregation
from headwater.operators.grouping import Codes, Grouped, group
from headwater.operators.keys import key_arrays
from headwater.operators.window.panes import key_columns
from headwater.operators.window.schedule import slice_starts
from headwater.windows.assigners import SlicedAssigner

_ROWS = "@rows"
"""The column, of a combined batch, with the number of rows in each accumulator."""
_SAMPLE_ROWS, _PAYS = 4096, 4
"""Combining pays when the rows of a sample make at most a quarter as many accumulators."""


@dataclass(frozen=True)
class Sliced:
    """Accumulators by slice and key: rows of a table in the order of their slices."""

    table: pa.Table
    starts: Timestamps
    rows: Timestamps
    """How many rows went into each."""

    def take(self, places: Codes) -> Sliced:
        """Some of them."""
        return Sliced(self.table.take(pa.array(places)), self.starts[places], self.rows[places])


class Slicer:
    """Groups rows by key and slice."""

    def __init__(self, node: WindowNode, step: str) -> None:
        assert node.aggregates is not None
        assert isinstance(node.assigner, SlicedAssigner)
        self._node, self._step, self._assigner = node, step, node.assigner
        self.aggregation = Aggregation(node.aggregates, node.input_schema, step, takes_back=node.takes_back)
        self.keys = [node.schema.field(name) for name in key_columns(node)]
        self.schema = pa.schema([*self.keys, *self.aggregation.fields])
        self.is_in_any_order = is_in_any_order(node.aggregates)

    def starts(self, batch: Batch) -> Timestamps:
        """Where the slice of each row starts."""
        return slice_starts(self._assigner, batch, self._step)

    def groups(self, batch: Batch, starts: Timestamps) -> Grouped:
        """The rows by slice and key, slices in order."""
        codes = np.unique(starts, return_inverse=True)[1].astype(np.int64)
        return group(key_arrays(batch, self._node.key), len(batch), codes)

    def slice(self, batch: Batch, starts: Timestamps) -> Sliced:
        """The rows as accumulators."""
        groups = self.groups(batch, starts)
        adding = None if batch.kinds is None else adds(batch.kinds)
        partial = self.aggregation.partial(batch.table, groups.codes, len(groups), adding)
        first = pa.array(groups.first)
        keys = [flat(column.take(first)) for column in key_arrays(batch, self._node.key)]
        table = pa.Table.from_arrays([*keys, *partial.columns], schema=self.schema)
        return Sliced(table, starts[groups.first], np.bincount(groups.codes, minlength=len(groups)))

    def merge(self, batch: Batch) -> Sliced:
        """What combiners made, as one accumulator for each key and slice."""
        codes = np.unique(batch.timestamps, return_inverse=True)[1]
        width = len(self.keys)
        keys = batch.table.columns[:width]
        groups = group(keys, len(batch), codes.astype(np.int64))
        accumulators = batch.table.select(range(width, width + len(self.aggregation.fields)))
        merged = self.aggregation.merge(accumulators, groups.codes, len(groups))
        first = pa.array(groups.first)
        table = pa.Table.from_arrays([*(flat(k.take(first)) for k in keys), *merged.columns], schema=self.schema)
        rows = np.zeros(len(groups), np.int64)
        np.add.at(rows, groups.codes, batch.table.column(_ROWS).to_numpy())
        return Sliced(table, batch.timestamps[groups.first], rows)


class WindowCombiner:
    """Combines rows on their way to a sliced window, where that makes them fewer."""

    def __init__(self, node: WindowNode, step: str) -> None:
        self._slicer = Slicer(node, step)

    def combine(self, batch: Batch) -> Batch | None:
        """The batch as accumulators; None when that would not pay. Depends on the batch alone."""
        starts = self._slicer.starts(batch)
        sample = min(len(batch), _SAMPLE_ROWS)
        if len(self._slicer.groups(batch.slice(0, sample), starts[:sample])) * _PAYS > sample:
            return None
        sliced = self._slicer.slice(batch, starts)
        table = sliced.table.append_column(_ROWS, pa.array(sliced.rows, pa.int64()))
        key = None if batch.key is None else table.column(0).combine_chunks()
        return Batch(table, sliced.starts, key)
