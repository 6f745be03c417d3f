"""The bottom line of a terminal that others write to as well."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

_CLEAR = "\r\x1b[K"


class Screen:
    """One line that is drawn over and over. What others write while it is there goes above it, line by line.

    For that, `write` of the standard streams is taken over while the line is shown: handlers of `logging` hold the streams
    themselves, so putting others in their place would not reach them.
    """

    def __init__(self, terminal: TextIO) -> None:
        self._terminal = terminal
        self._lock = threading.RLock()
        self._line = ""
        self._is_mid_line = False
        """Whether somebody has written part of a line, so that there is no room for ours."""
        self._taken: list[TextIO] = []

    def open(self) -> None:
        """Take the streams over that lead to a terminal."""
        for stream in {id(one): one for one in (sys.stdout, sys.stderr, self._terminal)}.values():
            if is_terminal(stream):
                stream.write = self._writing(stream.write)  # type: ignore[method-assign]
                self._taken.append(stream)

    def draw(self, line: str) -> None:
        """Show a line in place of the last one, cut to the width of the terminal."""
        with self._lock:
            if not self._is_mid_line:
                self._line = line[: max(1, self._width() - 1)]
                self._put(f"{_CLEAR}{self._line}")

    def close(self, last: str) -> None:
        """Give the streams back, and leave one last line behind."""
        with self._lock:
            self._wipe()
            for stream in self._taken:
                del stream.write
            self._taken = []
            self._put(f"{last}\n" if not self._is_mid_line else f"\n{last}\n")

    def _writing(self, write: Callable[[str], int]) -> Callable[[str], int]:
        def above_the_line(text: str) -> int:
            with self._lock:
                self._wipe()
                written = write(text)
                if text:
                    self._is_mid_line = not text.endswith("\n")
                return written

        return above_the_line

    def _wipe(self) -> None:
        if self._line:
            self._put(_CLEAR)
            self._line = ""

    def _put(self, text: str) -> None:
        with suppress(OSError, ValueError):  # a job goes on when its terminal is gone
            type(self._terminal).write(self._terminal, text)
            self._terminal.flush()

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._terminal.fileno()).columns or 80
        except (OSError, ValueError):
            return 80


def is_terminal(stream: TextIO | None) -> bool:
    """Whether somebody looks at what is written there."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False
