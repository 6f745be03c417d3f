"""A source whose rows can be read from given times on, for tests of idle splits, alignment and processing time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Positions, Source
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema, SchemaLike


class TimedRows(Source):
    """Splits of rows, each with the processing time, in ms after the start of the job, from which it can be read.

    A split's times must not go back. The input ends when all rows are read. Use it with a `clock` of your own.

    >>> import headwater as hw
    >>> source = TimedRows([[(0, ("a", 1)), (500, ("a", 2))], [(200, ("b", 1))]], "k string, n long")
    >>> env = hw.Environment("doc", engine="local", checkpoint_interval="1 ms")
    >>> sink = hw.connectors.memory()
    >>> end = env.source(source, "k string, n long").sink(sink)
    >>> job = env.run(clock=lambda epoch: 100 * (epoch + 1))
    >>> sink.rows
    [Row(k='a', n=1), Row(k='b', n=1), Row(k='a', n=2)]
    """

    bounded = True

    def __init__(self, splits: Sequence[Sequence[tuple[int, Any]]], schema: SchemaLike) -> None:
        arrow = Schema.of(schema).arrow
        self._times = [[at for at, _ in rows] for rows in splits]
        if any(times != sorted(times) for times in self._times):
            raise ValueError("the times of a split must not go back; sort its rows by the time they can be read from")
        self._tables = [encode_rows([row for _, row in rows], arrow, "timed rows") for rows in splits]

    def describe(self) -> str:
        return f"{sum(len(t) for t in self._tables)} timed rows in memory"

    def check(self, schema: Schema) -> None:
        """Rows were checked when they were given."""

    def earliest(self) -> Positions:
        return {str(i): 0 for i in range(len(self._tables))}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {str(i): bisect_right(times, elapsed_ms) for i, times in enumerate(self._times)}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        yield from self._tables[int(split)].slice(start, end - start).to_batches()
