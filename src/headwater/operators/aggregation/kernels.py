"""Which kernel computes an aggregate: one for each function of the table of facts, and another where rows are taken back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headwater.aggregates.called import CalledAggregate
from headwater.aggregates.declared import Aggregate
from headwater.operators.aggregation.arithmetic import Average, Count, Sum, Variance
from headwater.operators.aggregation.called import CalledFold, CalledTakingBack
from headwater.operators.aggregation.counted import CountedValues, OrderedValues
from headwater.operators.aggregation.kernel import Kernel
from headwater.operators.aggregation.lists import Collection, DistinctCount
from headwater.operators.aggregation.picks import Arrival, Extreme
from headwater.operators.aggregation.signed import SignedAverage, SignedCount, SignedVariance, signed_sum
from headwater.operators.aggregation.sketches import DistinctEstimate, Quantiles, SignedQuantiles


@dataclass(frozen=True)
class Use:
    """An aggregate as a step uses it."""

    aggregate: Aggregate
    types: list[pa.DataType]
    """Those of its columns."""
    result: pa.DataType
    step: str

    @property
    def column(self) -> str:
        return self.aggregate.column or ""

    @property
    def q(self) -> float | tuple[float, ...]:
        assert self.aggregate.q is not None
        return self.aggregate.q


KERNELS: Mapping[str, Callable[[Use], Kernel]] = {
    "count": lambda _: Count(),
    "sum": lambda use: Sum(use.result, use.step, use.column),
    "avg": lambda use: Average(use.types[0], use.result, use.step, use.column),
    "stddev": lambda _: Variance(root=True),
    "var": lambda _: Variance(root=False),
    "min": lambda use: Extreme(use.types, largest=False),
    "max": lambda use: Extreme(use.types, largest=True),
    "min_by": lambda use: Extreme(use.types, largest=False),
    "max_by": lambda use: Extreme(use.types, largest=True),
    "first": lambda use: Arrival(use.types[0], last=False),
    "last": lambda use: Arrival(use.types[0], last=True),
    "first_value": lambda use: Arrival(use.types[0], last=False, drops_nulls=True),
    "last_value": lambda use: Arrival(use.types[0], last=True, drops_nulls=True),
    "collect_list": lambda use: Collection(use.types[0], distinct=False),
    "collect_set": lambda use: Collection(use.types[0], distinct=True),
    "count_distinct": lambda use: DistinctCount(use.types[0]),
    "approx_count_distinct": lambda _: DistinctEstimate(),
    "approx_quantile": lambda use: Quantiles(use.q),
}
"""Those over rows that are all there to stay."""


def _counted(use: Use) -> Kernel:
    return CountedValues(use.types, KERNELS[use.aggregate.function](use))


def _ordered(use: Use) -> Kernel:
    drops_nulls = use.aggregate.function not in ("first", "last")
    return OrderedValues(use.types[0], KERNELS[use.aggregate.function](use), drops_nulls=drops_nulls)


TAKING_BACK: Mapping[str, Callable[[Use], Kernel]] = {
    "count": lambda _: SignedCount(),
    "sum": lambda use: signed_sum(use.result, use.step, use.column),
    "avg": lambda use: SignedAverage(use.types[0], use.result, use.step, use.column),
    "stddev": lambda _: SignedVariance(root=True),
    "var": lambda _: SignedVariance(root=False),
    "min": _counted,
    "max": _counted,
    "min_by": _counted,
    "max_by": _counted,
    "first": _ordered,
    "last": _ordered,
    "first_value": _ordered,
    "last_value": _ordered,
    "collect_list": _ordered,
    "collect_set": _counted,
    "count_distinct": _counted,
    "approx_quantile": lambda use: SignedQuantiles(use.q),
}
"""Those over changelogs."""


def kernel_for(use: Use, *, takes_back: bool) -> Kernel:
    """What computes an aggregate; with `takes_back` over a changelog."""
    aggregate = use.aggregate
    if isinstance(aggregate, CalledAggregate):
        if takes_back:
            return CalledTakingBack(aggregate, use.types, use.result, use.step)
        return CalledFold(aggregate, use.result, use.step)
    return (TAKING_BACK if takes_back else KERNELS)[aggregate.function](use)
