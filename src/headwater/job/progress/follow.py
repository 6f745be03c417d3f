"""Following a job: a thread that asks for its status, now and then, and shows it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol, TextIO

from headwater.connectors.contract import Source
from headwater.graph.nodes import SourceNode
from headwater.job.progress.line import UNKNOWN, Speed, last_line, rows_read, running_line
from headwater.job.progress.screen import Screen, is_terminal
from headwater.job.status import JobStatus

_DRAW_S, _PLAIN_S, _ASK_S = 0.5, 10.0, 3.0
"""How often the line is drawn in a terminal, is written elsewhere, and sources are asked how much they have."""


class Followed(Protocol):
    """A job, as far as it is followed."""

    name: str

    def status(self) -> JobStatus:
        """Where it stands."""


@contextmanager
def shown(job: Followed, sources: Mapping[str, SourceNode], *, wanted: bool | None) -> Iterator[None]:
    """Show what a job does for as long as this lasts: on stderr if that is a terminal, or if it is wanted anyway."""
    stream = sys.stderr
    if stream is None or wanted is False or (wanted is None and not is_terminal(stream)):
        yield
        return
    follower = Follower(job, sources, stream)
    follower.start()
    try:
        yield
    finally:
        follower.close()


class Follower:
    """Draws the line of a job in a terminal; elsewhere it writes one now and then."""

    def __init__(self, job: Followed, sources: Mapping[str, SourceNode], stream: TextIO) -> None:
        self._job, self._stream = job, stream
        self._screen = Screen(stream) if is_terminal(stream) else None
        self._speed, self._waiting = Speed(), Waiting(job, {uid: node.source for uid, node in sources.items()})
        self._ended = threading.Event()
        self._began_s = time.monotonic()
        self._timed = {uid for uid, node in sources.items() if node.watermarks.column is not None}
        self._thread = threading.Thread(target=self._run, name="headwater-progress", daemon=True)

    def start(self) -> None:
        if self._screen is not None:
            self._screen.open()
        self._waiting.start()
        self._thread.start()

    def close(self) -> None:
        """Clear the line, and leave a last one with what the job has done."""
        self._ended.set()
        self._waiting.close()
        self._thread.join()
        last = last_line(self._job.name, self._job.status(), int((time.monotonic() - self._began_s) * 1000))
        if self._screen is None:
            self._write(last)
        else:
            self._screen.close(last)

    def _run(self) -> None:
        while not self._ended.wait(_PLAIN_S if self._screen is None else _DRAW_S):
            status = self._job.status()
            speed = self._speed.at(time.monotonic(), rows_read(status))
            line = running_line(self._job.name, status, speed, self._timed, self._waiting.rows)
            if self._screen is None:
                self._write(line)
            else:
                self._screen.draw(line)

    def _write(self, line: str) -> None:
        with suppress(OSError, ValueError):  # a job goes on when nobody reads any more
            print(line, file=self._stream, flush=True)


class Waiting:
    """How many rows are still to be read, as sources say that can. They are asked on a thread of its own: it may take time."""

    def __init__(self, job: Followed, sources: Mapping[str, Source]) -> None:
        self._job, self._sources = job, sources
        self.rows: int | str | None = None
        """None where no source can say; '?' where one could not."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-waiting", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Ask no more; a question that is under way is left to itself."""
        self._ended.set()

    def ask(self) -> None:
        """Ask every source that has given rows."""
        try:
            found = [
                self._sources[uid].rows_after(dict(at))
                for uid, at in self._job.status().positions.items()
                if uid in self._sources
            ]
            known = [count for count in found if count is not None]
            self.rows = sum(known) if known else None
        except Exception:  # a broker that does not answer, as it happens: the job will say so if it matters
            self.rows = UNKNOWN

    def _run(self) -> None:
        while not self._ended.wait(_ASK_S):
            self.ask()
