"""Rows in memory: a bounded source over a list and a sink that keeps rows in the driver, for notebooks and tests."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Changes, Guarantee, Positions, Sink, Source, Staged, read_staged
from headwater.data.rows import decode, encode_rows, make_rows
from headwater.data.schema import Schema


class RowsSource(Source):
    """A bounded source over rows given in the program, which may be several splits."""

    bounded = True

    def __init__(self, splits: Sequence[Sequence[Any] | pa.Table], schema: Schema) -> None:
        """Each split is rows as dicts or tuples, or a table of that schema."""
        self._tables = [
            rows if isinstance(rows, pa.Table) else encode_rows(list(rows), schema.arrow, "from_rows")
            for rows in splits
        ]

    def describe(self) -> str:
        return f"{sum(len(t) for t in self._tables)} rows in memory"

    def check(self, schema: Schema) -> None:
        """Rows were checked when they were given."""

    def earliest(self) -> Positions:
        return {str(i): 0 for i in range(len(self._tables))}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {str(i): len(table) for i, table in enumerate(self._tables)}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        yield from self._tables[int(split)].slice(start, end - start).to_batches()


class MemorySink(Sink):
    """Keeps published rows in this process; `rows` is a list of named tuples in the order of publication."""

    guarantee = Guarantee.EXACTLY_ONCE
    outlives_process = False
    changes = Changes.SHOWN

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._schema: Schema | None = None
        self._job_id = ""
        self._published = -1

    def __getstate__(self) -> dict[str, Any]:
        return {"rows": [], "_schema": None}  # tasks stage files; only the driver's sink holds rows

    @property
    def schema(self) -> Schema | None:
        """What the rows look like; None before the first run."""
        return self._schema

    def describe(self) -> str:
        return "memory"

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        self._schema = schema
        if not resumed or job_id != self._job_id:
            self._job_id, self._published = job_id, -1

    def publish(self, epoch: int, files: list[Staged]) -> None:
        assert self._schema is not None
        if epoch <= self._published:
            return
        for table in [read_staged(file) for file in files]:
            self.rows.extend(make_rows(self._schema.row, [decode(c) for c in table.columns]))
        self._published = epoch
