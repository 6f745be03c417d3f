"""Columns in files on the local disk of a worker, read through memory maps.

A file has no name: nobody else can open, damage or remove it, and it goes with the last column that is read from it, or
with the process, however that ends. It is written with calls that fail when the disk is full, and mapped when it is whole.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headwater.errors import StateError

_ALIGNED_BYTES = 64
"""Where Arrow wants buffers to begin, so that they are read in place."""


class ArrowFiles:
    """The files of one step on one subtask, in a folder that is there, or where temporary files go."""

    def __init__(self, step: str, folder: Path | None) -> None:
        self._step, self._folder = step, folder

    def move(self, tables: Sequence[pa.Table]) -> list[pa.Table]:
        """The same tables in one file; the system has of it in memory what it has room for."""
        try:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                sink = pa.PythonFile(file, "w")
                ends = [_written(table, sink) for table in tables]
                file.flush()
                with pa.memory_map(
                    f"/dev/fd/{file.fileno()}"
                ) as whole:  # what is read of it outlives it, and no descriptor
                    mapped = whole.read_buffer()
        except (OSError, pa.ArrowException) as error:
            folder = str(self._folder or tempfile.gettempdir())
            raise StateError.disk_failed(self._step, folder, str(error)) from None
        return [
            pa.ipc.open_stream(mapped.slice(start, end - start)).read_all()
            for start, end in zip([0, *ends], ends, strict=False)
        ]


def _written(table: pa.Table, sink: pa.PythonFile) -> int:
    """Write a table; tells where the next one begins."""
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    sink.write(bytes(-sink.tell() % _ALIGNED_BYTES))
    end: int = sink.tell()
    return end
