"""A sink by hand: opened and given epochs as an engine does it."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

import headwater as hw
from headwater.connectors.contract import Sink, Staged

AnySink = TypeVar("AnySink", bound=Sink)


class Published(Generic[AnySink]):
    """A sink, its schema, and the folder in which its rows are staged."""

    def __init__(self, sink: AnySink, schema: str | hw.Schema, folder: Path, uid: str = "out") -> None:
        self.sink, self.schema, self.uid = sink, hw.Schema.of(schema), uid
        self._folder = folder

    def open(self, job: str = "a", *, after: tuple[str, int] | None = None, resumed: bool = True) -> Published[AnySink]:
        if after is not None:
            self.sink.take_over(self.uid, job, *after)
        self.sink.open(self.uid, job, self.schema, resumed=resumed)
        return self

    def publish(self, epoch: int, *files: list[Any]) -> None:
        staged = []
        for number, rows in enumerate(files):
            columns = list(zip(*rows, strict=True))
            arrays = [pa.array(values, field.type) for values, field in zip(columns, self.schema.arrow, strict=True)]
            path = self._folder / f"{epoch:010d}-{self.uid}-{number}-{uuid.uuid4().hex}.arrow"
            self.sink.stage(pa.table(arrays, schema=self.schema.arrow), path)
            staged.append(Staged(self.uid, str(path), path.name, len(rows), path.stat().st_size))
        self.sink.publish(epoch, staged)
