"""What the demo shows: a live line in a terminal, one line after another elsewhere, and the tables at the end."""

from __future__ import annotations

import time

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from headwater.demo.proof import Proof

_TOP = 5
_NEWS_S, _NO_NEWS_S = 2.0, 10.0
"""How often progress, and the lack of it, is a line of its own where lines cannot be rewritten."""


class Screen:
    """Tells the story as it happens."""

    def __init__(self, events: int, kills: int) -> None:
        self._console = Console(highlight=False)
        self._events, self._kills = events, kills
        self._started = self._last_line = time.monotonic()
        self._last_events = 0
        self._progress = Progress(
            TextColumn("[bold]{task.description:<12}"),
            BarColumn(bar_width=10),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} events, {task.fields[facts]}"),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
        )
        self._task: TaskID | None = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._end_progress()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._console.print(f"[dim]{self.elapsed_s():5.1f} s[/]  {text}", soft_wrap=True)

    def elapsed_s(self) -> float:
        """Seconds since the demo began."""
        return time.monotonic() - self._started

    def update(self, phase: str, events: int, epoch: int, killed: int) -> None:
        """Where the job stands."""
        facts = f"{'no epoch yet' if epoch < 0 else f'epoch {epoch}'}, killed {killed} of {self._kills}"
        if not self._console.is_terminal:
            self._update_plain(phase, events, facts)
            return
        if self._task is None:
            self._progress.start()
            self._task = self._progress.add_task(phase, total=self._events, facts=facts)
        self._progress.update(self._task, description=phase, completed=events, facts=facts)

    def _update_plain(self, phase: str, events: int, facts: str) -> None:
        pause_s = _NO_NEWS_S if events == self._last_events else _NEWS_S
        if time.monotonic() - self._last_line >= pause_s:
            self._last_line, self._last_events = time.monotonic(), events
            self.say(f"{phase}: {events:,} of {self._events:,} events, {facts}")

    def show(self, proof: Proof) -> None:
        """A table of the proof: the first lines, which are the wrong ones if there are any, and the line over all."""
        self._end_progress()
        table = Table(
            title=proof.title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        for number, name in enumerate((*proof.columns, "exact")):
            table.add_column(name, justify="right" if 0 < number < len(proof.columns) else "left")
        for cells, is_exact in proof.lines[:_TOP]:
            table.add_row(*cells, _verdict(is_exact=is_exact))
        table.add_section()
        cells, is_exact = proof.total
        table.add_row(*cells, _verdict(is_exact=is_exact), style="bold")
        self._console.print(table)

    def fail(self, message: str) -> None:
        """The end of a demo that went wrong."""
        self._end_progress()
        self._console.print(message, style="bold red", markup=False, soft_wrap=True)

    def _end_progress(self) -> None:
        if self._task is not None:
            self._progress.stop()


def _verdict(*, is_exact: bool) -> str:
    return "[green]yes[/]" if is_exact else "[bold red]NO[/]"
