"""Rows in epochs as they were written down, as a source."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headwater.connectors.contract import FOR_EVER_MS, Positions, Source
from headwater.data.schema import Schema


class ScriptSource(Source):
    """The epochs of a transcript as a bounded source: each call of `latest` is one epoch further."""

    bounded = True

    def __init__(self, table: pa.Table, bounds: list[int]) -> None:
        self._table, self._bounds = table, bounds

    def describe(self) -> str:
        return f"script of {len(self._bounds)} epochs"

    def check(self, schema: Schema) -> None:
        """The rows were made for the schema."""

    def earliest(self) -> Positions:
        return {"0": 0}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        if elapsed_ms >= FOR_EVER_MS:  # asked where the input ends
            return {"0": self._bounds[-1]}
        return {"0": next((bound for bound in self._bounds if bound > start["0"]), self._bounds[-1])}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        yield from self._table.slice(start, end - start).to_batches()
