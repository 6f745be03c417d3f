"""A sink that prints rows as JSON lines when their epoch is committed."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from headwater.connectors.contract import Changes, Sink, Staged, read_staged
from headwater.data.schema import Schema


class ConsoleSink(Sink):
    """Prints each committed row; a row can be printed again when the process dies while printing."""

    changes = Changes.SHOWN

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def __getstate__(self) -> dict[str, object]:
        return {"_stream": None}  # tasks never print

    def describe(self) -> str:
        return "console"

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        self._uid = uid

    def publish(self, epoch: int, files: list[Staged]) -> None:
        out = self._stream or sys.stdout
        for file in files:
            for row in read_staged(file).to_pylist():
                text = f"{self._uid} {epoch} {json.dumps(row, default=str, ensure_ascii=False)}"
                print(_printable(text, out), file=out, flush=True)


def _printable(text: str, out: TextIO) -> str:
    """The text, with what the stream's encoding lacks as escapes: rows are committed, and must be shown."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
