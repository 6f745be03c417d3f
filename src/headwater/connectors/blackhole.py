"""A sink that keeps nothing, to measure a job, or to run one for its side effects."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from headwater.connectors.contract import Changes, Guarantee, Sink, Staged
from headwater.data.schema import Schema


class BlackholeSink(Sink):
    """Takes all rows, and changes of rows, and writes none of them anywhere."""

    guarantee = Guarantee.EXACTLY_ONCE
    changes = Changes.SHOWN

    def describe(self) -> str:
        return "blackhole"

    def stage_all(self, table: pa.Table, path: Path, name: str) -> Iterator[tuple[Path, str, int]]:
        yield from ()

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        """There is nothing to open."""

    def publish(self, epoch: int, files: list[Staged]) -> None:
        """There is nothing to show."""
