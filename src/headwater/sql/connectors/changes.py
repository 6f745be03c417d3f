"""Sources of changes: records that say what becomes of a row, as rows with a column that says what each does."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headwater.connectors.contract import DeadLetters, Positions, Source
from headwater.data.schema import Schema


class ChangesSource(Source):
    """Reads another source, and makes rows and their kinds of its records."""

    def __init__(self, records: Source) -> None:
        self._records = records
        self.bounded, self.replayable = records.bounded, records.replayable
        self.max_positions_per_epoch = records.max_positions_per_epoch
        self._schema: Schema | None = None

    @abstractmethod
    def record_schema(self, rows: Schema) -> Schema:
        """What is read, for rows of a schema to be made of it."""

    @abstractmethod
    def changes(self, records: pa.RecordBatch, rows: pa.Schema) -> pa.RecordBatch:
        """The rows of some records, in order; the last column is their kind."""

    def describe(self) -> str:
        return f"changes in {self._records.describe()}"

    def check(self, schema: Schema) -> None:
        self._schema = schema
        self._records.check(self.record_schema(schema))

    def earliest(self) -> Positions:
        return self._records.earliest()

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return self._records.latest(start, elapsed_ms)

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        assert self._schema is not None, "a source is checked before it is read"
        for batch in self._records.read(split, start, end):
            yield batch if isinstance(batch, DeadLetters) else self.changes(batch, self._schema.arrow)

    def release(self, split: str) -> None:
        self._records.release(split)

    def remember_in(self, folder: Path) -> None:
        self._records.remember_in(folder)

    def needed(self, folder: Path, positions: Positions) -> Iterator[Path]:
        return self._records.needed(folder, positions)

    def published(self, positions: Positions) -> None:
        self._records.published(positions)

    def rows_after(self, positions: Positions) -> int | None:
        return self._records.rows_after(positions)
