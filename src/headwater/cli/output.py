"""What commands print: tables and lines for people, or with --json one document for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

Json = Annotated[bool, typer.Option("--json", help="print JSON instead of text")]
_PIPE_COLUMNS = 10_000
"""As wide as a table may be where no terminal bounds it: what reads it wants whole lines."""


def console() -> Console:
    """Where people read; made anew, as standard output may be another one by now."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_COLUMNS, soft_wrap=True)


def show_json(content: Any) -> None:
    """One document."""
    sys.stdout.write(f"{json.dumps(content, indent=2, default=_plain, ensure_ascii=False)}\n")


def show_json_line(content: Any) -> None:
    """One document in a line, of several."""
    sys.stdout.write(f"{json.dumps(content, default=_plain, ensure_ascii=False)}\n")
    sys.stdout.flush()


def show_text(text: str) -> None:
    """Lines as they are."""
    sys.stdout.write(f"{text}\n")


def show_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], numbers: Iterable[str] = ()) -> None:
    """A table; columns of numbers stand to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    right = set(numbers)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=not sys.stdout.isatty())
    for row in rows:
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    console().print(table)


def show_facts(facts: Mapping[str, Any]) -> None:
    """Names and values, a line each."""
    width = max(map(len, facts), default=0)
    for name, value in facts.items():
        show_text(f"{name:<{width}}  {value}")


def _plain(value: Any) -> Any:
    """What JSON has no form for."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal) and value.is_finite() and value.as_tuple().exponent == 0:
        return int(value)  # as sums of whole numbers are
    return str(value)
