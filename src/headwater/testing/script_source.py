"""Rows in epochs as they were written down, as a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headwater.connectors.contract import FOR_EVER_MS, Positions, Source
from headwater.data.schema import Schema


@dataclass(frozen=True)
class Script:
    """The rows of a split, and how many of them have come when each epoch is over."""

    table: pa.Table
    bounds: Sequence[int]

    def after(self, start: int) -> int:
        """Where the epoch that begins here ends."""
        return next((bound for bound in self.bounds if bound > start), self.bounds[-1])


class ScriptSource(Source):
    """Splits whose epochs are written down, as a bounded source: each call of `latest` is one epoch further."""

    bounded = True

    def __init__(self, *scripts: Script) -> None:
        self._scripts = {str(number): script for number, script in enumerate(scripts)}

    def describe(self) -> str:
        return f"script of {max(len(script.bounds) for script in self._scripts.values())} epochs"

    def check(self, schema: Schema) -> None:
        """The rows were made for the schema."""

    def earliest(self) -> Positions:
        return dict.fromkeys(self._scripts, 0)

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        if elapsed_ms >= FOR_EVER_MS:  # asked where the input ends
            return {split: script.bounds[-1] for split, script in self._scripts.items()}
        return {split: script.after(start[split]) for split, script in self._scripts.items()}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        yield from self._scripts[split].table.slice(start, end - start).to_batches()
