"""Aggregates that keep values: lists and sets of them. Accumulators are lists, merged by putting their items together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headwater.operators.aggregation.kernel import Groups, Ints, list_sizes, present, to_lists
from headwater.operators.aggregation.values import equality_codes


class Collection:
    """The values of each group that are not null, in order of arrival: all of them, or each once."""

    def __init__(self, dtype: pa.DataType, *, distinct: bool) -> None:
        self._distinct = distinct
        self.fields = (pa.field("values", pa.list_(dtype), nullable=False),)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        values, groups = present(columns[0], groups)
        if self._distinct:
            rows = _first_of_each(equality_codes(values), groups)
            values, groups = values.take(pa.array(rows)), Groups(groups.of[rows], groups.count)
        return [to_lists(values.take(pa.array(groups.order)), groups.sizes)]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        return self.partial([columns[0].flatten()], groups.repeat(list_sizes(columns[0])))

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return columns[0]


class DistinctCount(Collection):
    """How many different values, exactly: it keeps them all."""

    def __init__(self, dtype: pa.DataType) -> None:
        super().__init__(dtype, distinct=True)

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return pa.array(list_sizes(columns[0]))


def _first_of_each(codes: Ints, groups: Groups) -> Ints:
    """The rows where a code is new to its group."""
    pairs = pa.array(groups.of * (int(codes.max(initial=0)) + 1) + codes).dictionary_encode()
    rows = np.empty(len(pairs.dictionary), np.int64)
    rows[pairs.indices.to_numpy()[::-1]] = np.arange(len(codes))[::-1]
    return rows
