"""The embedded event log as a source: each partition is a split, positions are offsets."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import Positions, Source
from headwater.data.schema import Schema
from headwater.errors import GraphError, SourceError
from headwater.eventlog import EventLog, Topic

_STARTS = ("earliest", "latest")


class LogSource(Source):
    """Reads a topic from its earliest row, or from where it stands when the job first starts."""

    def __init__(self, path: str | os.PathLike[str], topic: str, start: str = "earliest") -> None:
        if start not in _STARTS:
            raise GraphError.bad_argument("log", f"starts at {' or '.join(_STARTS)}", start, "choose one of them")
        self._path, self._name, self._start = Path(path).absolute(), topic, start
        self._opened: Topic | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def describe(self) -> str:
        return f"log topic {self._name} in {self._path}"

    def check(self, schema: Schema) -> None:
        found = Schema.of(self._topic().schema)
        if [(f.name, f.type) for f in found.arrow] != [(f.name, f.type) for f in schema.arrow]:
            raise SourceError.schema_mismatch(self.describe(), schema.ddl(), found.ddl())

    def earliest(self) -> Positions:
        topic = self._topic()
        return _named(topic.start_offsets() if self._start == "earliest" else topic.end_offsets())

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return _named(self._topic().end_offsets())

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        return self._topic().read(int(split), start, end)

    def rows_after(self, positions: Positions) -> int:
        ends = _named(EventLog(self._path).topic(self._name).end_offsets())
        return sum(max(0, end - positions.get(split, 0)) for split, end in ends.items())

    def _topic(self) -> Topic:
        if self._opened is None:
            self._opened = EventLog(self._path).topic(self._name)
        return self._opened


def _named(offsets: dict[int, int]) -> Positions:
    return {str(partition): offset for partition, offset in offsets.items()}
