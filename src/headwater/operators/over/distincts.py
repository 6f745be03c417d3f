"""Different values of all rows so far: each counts where it first comes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from headwater.aggregates import Aggregate
from headwater.data.batch import flat
from headwater.functions import EVENT
from headwater.graph.nodes import OverAggregateNode
from headwater.graph.nodes.over import RANGE
from headwater.operators.aggregation import Aggregation
from headwater.operators.aggregation.kernel import list_sizes, mask
from headwater.operators.aggregation.values import equality_codes
from headwater.operators.grouping import Codes
from headwater.operators.keys import key_spread
from headwater.operators.over.due import Due
from headwater.operators.over.parts import KeepsAccumulators
from headwater.state.accumulators import open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.columns import Places


class RunningDistincts(KeepsAccumulators):
    """Counts of different values over all rows so far: the values of each partition are kept.

    What other aggregates do, to merge accumulators up to each row, would write all values again for each of them.
    """

    def __init__(
        self, node: OverAggregateNode, aggregates: Mapping[str, Aggregate], step: str, backend: StateBackend
    ) -> None:
        self._aggregates, self._by_range = aggregates, node.frame.kind == RANGE and node.time == EVENT
        self._aggregation = Aggregation(aggregates, node.rows, step)
        self._schema = pa.schema(self._aggregation.fields)
        self.kept = open_accumulators(
            "distinct", self._schema, step, node.key.type, key_spread(node.key), backend=backend
        )

    def over(self, due: Due) -> Mapping[str, pa.Array]:
        count, found = len(due.first), {}
        came = self._aggregation.partial(due.rows, due.groups, count).cast(self._schema)

        def fold(places: Places, before: pa.Table) -> pa.Table:
            for (name, aggregate), lists in zip(self._aggregates.items(), before.columns, strict=True):
                assert aggregate.column is not None
                found[name] = _counted(due, flat(due.rows.column(aggregate.column)), flat(lists), places)
            codes = np.concatenate([places, np.arange(count)])
            return self._aggregation.merge(pa.concat_tables([before, came]), codes, count)

        self.kept.update(due.keys, fold)
        at = due.last_of_time() if self._by_range else np.arange(len(due.times))
        return {name: pa.array(counts[at]) for name, counts in found.items()}


def _counted(due: Due, values: pa.Array, lists: pa.Array, places: Places) -> Codes:
    """For each row, how many different values there are up to it, in partitions of which some have lists of them."""
    known, sizes = lists.flatten(), list_sizes(lists)
    there = mask(values.is_valid())
    of = np.concatenate([np.repeat(places, sizes), due.groups[there]])
    codes = equality_codes(pa.concat_arrays([known, values.filter(pa.array(there))]))
    pairs = pa.array(of * (int(codes.max(initial=0)) + 1) + codes).dictionary_encode().indices.to_numpy()
    is_first = pairs > np.concatenate([[-1], np.maximum.accumulate(pairs)])[: len(pairs)]  # numbered as they first come
    is_new = np.zeros(len(values), np.int64)
    is_new[there] = is_first[len(known) :]
    total = np.cumsum(is_new)
    before = is_new[due.first] - total[due.first]
    before[places] += sizes
    counted: Codes = total + before[due.groups]
    return counted
