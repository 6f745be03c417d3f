"""The result of a query: rows as they stand now, of changes that come."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from rich.live import Live
from rich.table import Table as Shown

from headwater.cli.output import console, show_json_line, show_table
from headwater.streams.table import Table

_KIND = "row_kind"
_REFRESHES = 4
"""Times a second: as often as one can read."""
_ROOM = 6
"""Lines of the terminal that are not rows."""


class Result:
    """The rows of a table that changes, in the order in which they came. Equal rows may be there several times."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = [name for name in columns if name != _KIND]
        self.changes = 0
        self._rows: dict[tuple[Any, ...], int] = {}

    def apply(self, changes: Iterable[Any]) -> None:
        """Take changes in, or rows that are only added."""
        for row in changes:
            kind = getattr(row, _KIND, "+I")
            values = tuple(_hashable(getattr(row, name)) for name in self.columns)
            count = self._rows.get(values, 0) + (1 if kind.startswith("+") else -1)
            if count:
                self._rows[values] = count
            else:
                self._rows.pop(values, None)
            self.changes += 1

    def __len__(self) -> int:
        return sum(self._rows.values())

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows as they stand."""
        return [row for row, count in self._rows.items() for _ in range(count)]


def show_result(table: Table, *, limit: int, as_json: bool) -> None:
    """Run a query and show its rows: as they change in a terminal, otherwise each change, as a line of JSON, or the end."""
    if as_json:
        table.follow(_show_changes)
        return
    result = Result(table.columns)
    if not sys.stdout.isatty():
        table.follow(result.apply)
    else:
        with Live(console=console(), refresh_per_second=_REFRESHES, transient=True) as live:

            def seen(changes: Iterable[Any]) -> None:
                result.apply(changes)
                live.update(_shown(result, live.console.height - _ROOM))

            table.follow(seen)
    rows = result.rows()
    show_table(result.columns, [["NULL" if one is None else one for one in row] for row in rows[:limit]])
    more = f", of which {limit:,} are shown" if len(rows) > limit else ""
    console().print(f"{len(rows):,} rows{more}", style="dim", highlight=False)


def _show_changes(rows: Iterable[Any]) -> None:
    for row in rows:
        show_json_line(row._asdict())


def _shown(result: Result, room: int) -> Shown:
    rows = result.rows()
    shown = Shown(box=None, pad_edge=False, header_style="bold", caption=f"{len(rows):,} rows; Ctrl-C ends the query")
    for name in result.columns:
        shown.add_column(name)
    for row in rows[-max(room, 1) :]:
        shown.add_row(*("NULL" if value is None else str(value) for value in row))
    return shown


def _hashable(value: Any) -> Any:
    """Lists and maps, by which rows are found again, too."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return tuple((name, _hashable(one)) for name, one in value.items()) if isinstance(value, dict) else value
