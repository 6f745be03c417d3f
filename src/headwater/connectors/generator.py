"""Sources that make rows from their index, for demos, load and tests."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Positions, Source
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.errors import GraphError

_BATCH_ROWS = 8192


class IndexedSource(Source):
    """Rows by index, up to a count, all at once or at a rate; the splits take them in turn."""

    def __init__(self, count: int | None, rate: float | None, splits: int) -> None:
        if count is None and rate is None:
            raise GraphError.bad_argument("generator", "needs an end or a rate", None, "give count=... or rate=...")
        if splits < 1:
            raise GraphError.bad_argument("generator", "needs at least one split", splits, "give splits=1 or more")
        self._count, self._rate, self._splits = count, rate, splits
        self.bounded = count is not None
        self._schema: Schema | None = None

    @abstractmethod
    def batches(self, indices: range, schema: Schema) -> Iterator[pa.RecordBatch]:
        """The rows at some indices; they depend on nothing else, so that a replay gives the same rows."""

    def describe(self) -> str:
        size = "endless" if self._count is None else f"{self._count} rows"
        return f"generator ({size})"

    def check(self, schema: Schema) -> None:
        self._schema = schema

    def earliest(self) -> Positions:
        return {str(i): 0 for i in range(self._splits)}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {split: max(at, self._end(int(split), elapsed_ms)) for split, at in start.items()}

    def _end(self, split: int, elapsed_ms: int) -> int:
        share = None if self._count is None else len(range(split, self._count, self._splits))
        if self._rate is None:
            assert share is not None
            return share
        reached = int(self._rate * elapsed_ms / 1000 / self._splits)
        return reached if share is None else min(reached, share)

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        assert self._schema is not None
        indices = range(int(split) + start * self._splits, int(split) + end * self._splits, self._splits)
        for first in range(0, len(indices), _BATCH_ROWS):
            yield from self.batches(indices[first : first + _BATCH_ROWS], self._schema)


class GeneratorSource(IndexedSource):
    """`make(index)` gives the row at an index and must depend on nothing else, so that a replay gives the same rows."""

    def __init__(self, make: Callable[[int], Any], count: int | None, rate: float | None, splits: int) -> None:
        super().__init__(count, rate, splits)
        self._make = make

    def batches(self, indices: range, schema: Schema) -> Iterator[pa.RecordBatch]:
        return iter(encode_rows([self._make(i) for i in indices], schema.arrow, "generator").to_batches())
