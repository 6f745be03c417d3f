"""Aggregates that are functions of the user's: called row by row, with accumulators that are stored as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from itertools import islice
from typing import Any

import pyarrow as pa

from headwater.aggregates.called import CalledAggregate
from headwater.data.rows import converter, decode, encode
from headwater.operators.aggregation.kernel import Groups, list_sizes, to_lists
from headwater.operators.user_code import own_copy, user_code_failed

Values = tuple[Any, ...]


class CalledFold:
    """A function over rows that are all there to stay. A group without rows has no accumulator."""

    def __init__(self, aggregate: CalledAggregate, result: pa.DataType, step: str) -> None:
        self._function = own_copy(aggregate.called, step)
        self._kept_as = converter(aggregate.accumulator)
        self._step = f"{step}: {aggregate.function}"
        self._accumulator = pa.field("accumulator", aggregate.accumulator)
        self._result = pa.field(aggregate.function, result)
        self.fields: Sequence[pa.Field] = (self._accumulator,)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        rows = _grouped(list(zip(*map(decode, columns), strict=True)), groups)
        return [self._encoded([self._added(None, some) if some else None for some in rows])]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        kept = _grouped(decode(columns[0]), groups)
        return [self._encoded([self._merged([one for one in some if one is not None]) for some in kept])]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return encode([self._call(self._given, one) for one in decode(columns[0])], self._result, self._step)

    def _added(self, kept: Any, rows: Sequence[Values]) -> Any:
        def add(kept: Any) -> Any:
            kept = self._function.create() if kept is None else kept
            for values in rows:
                kept = self._kept_as(self._function.add(kept, *values))
            return kept

        return self._call(add, kept)

    def _merged(self, kept: Sequence[Any]) -> Any:
        return self._call(lambda some: reduce(self._function.merge, some) if some else None, kept)

    def _given(self, kept: Any) -> Any:
        return self._function.result(self._function.create() if kept is None else kept)

    def _call(self, function: Callable[[Any], Any], value: Any) -> Any:
        try:
            return function(value)
        except BaseException as error:
            raise user_code_failed(error, self._step) from None

    def _encoded(self, kept: list[Any]) -> pa.Array:
        return encode(kept, self._accumulator, self._step)


class CalledTakingBack(CalledFold):
    """A function over rows that may be taken back: what came waits beside the accumulator until it is settled in order."""

    def __init__(self, aggregate: CalledAggregate, types: list[pa.DataType], result: pa.DataType, step: str) -> None:
        super().__init__(aggregate, result, step)
        self._row = pa.struct([*(pa.field(f"f{at}", dtype) for at, dtype in enumerate(types)), _ADDS])
        self._waiting = pa.field("waiting", pa.list_(self._row), nullable=False)
        self.fields = (self._accumulator, self._waiting)

    def partial(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        adds = pa.array([True] * len(groups.of)) if groups.signs is None else pa.array(groups.signs > 0)
        rows = pa.StructArray.from_arrays([*columns, adds], fields=list(self._row)).take(pa.array(groups.order))
        return [pa.nulls(groups.count, self._accumulator.type), to_lists(rows, groups.sizes)]

    def merge(self, columns: Sequence[pa.Array], groups: Groups) -> list[pa.Array]:
        kept, waiting = [], []
        for some in _grouped(list(zip(*map(decode, columns), strict=True)), groups):
            accumulator: Any = None
            rows: list[Any] = []
            for one, more in some:
                if one is not None:
                    before = self._settled(accumulator, rows)
                    accumulator, rows = one if before is None else self._merged([before, one]), []
                rows += more
            kept.append(accumulator)
            waiting.append(rows)
        return [self._encoded(kept), encode(waiting, self._waiting, self._step)]

    def settle(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        none = pa.array([[]] * len(columns[0]), self._waiting.type)
        return [self._encoded([self._settled(*one) for one in zip(*map(decode, columns), strict=True)]), none]

    def result(self, columns: Sequence[pa.Array]) -> pa.Array:
        return super().result(self.settle(columns) if list_sizes(columns[1]).any() else columns)

    def _settled(self, kept: Any, rows: Sequence[Any]) -> Any:
        def apply(kept: Any) -> Any:
            kept = self._function.create() if kept is None else kept
            for *values, adds in rows:
                kept = self._kept_as((self._function.add if adds else self._function.retract)(kept, *values))
            return kept

        return self._call(apply, kept) if rows else kept


_ADDS = pa.field("adds", pa.bool_(), nullable=False)


def _grouped(values: list[Any], groups: Groups) -> Iterator[list[Any]]:
    """The values of each group, in order of arrival."""
    ordered = map(values.__getitem__, groups.order.tolist())
    return (list(islice(ordered, size)) for size in groups.sizes.tolist())
