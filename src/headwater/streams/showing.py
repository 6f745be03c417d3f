"""A stream's first rows, as a table on the screen."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from headwater.connectors.memory import MemorySink
from headwater.job.engine import Job

_CELL = 40
"""Longer values are cut: a table is for looking."""
_POLL_S = 0.05


def first_rows(job: Job, sink: MemorySink, n: int, timeout_ms: int) -> str | None:
    """Let a job run until it has ended, given so many rows, or taken so long; tells why it was stopped, if it was."""
    until = time.monotonic() + timeout_ms / 1000
    while not job.wait(_POLL_S):
        enough = len(sink.rows) > n
        if enough or time.monotonic() > until:
            job.stop()
            return f"the first {n} rows" if enough else f"stopped after {timeout_ms / 1000:g} s"
    return f"the first {n} rows of {len(sink.rows)}" if len(sink.rows) > n else None


def table_text(names: Sequence[str], rows: Sequence[Sequence[Any]], note: str | None) -> str:
    """Rows below the names of their columns, and a word on what is not shown."""
    cells = [list(names), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    head, *body = ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)) for row in cells]
    lines = [head.rstrip(), "  ".join("-" * width for width in widths), *(line.rstrip() for line in body)]
    return "\n".join([*lines, *([f"({note})"] if note else [] if rows else ["(no rows)"])]) + "\n"


def _cell(value: Any) -> str:
    text = "null" if value is None else str(value)
    text = text.replace("\n", "\\n")
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
