"""What Spark's JVM and its Python workers write to standard error, sorted.

Spark's log and its chatter go to the logger `headwater.spark`, at level debug. All else is of user code, a `print` in a
function for example, and goes to the standard error of this process as it is.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LOG = logging.getLogger("headwater.spark")
_STDERR = 2
_MARK = b"\x1e"
"""What every line of Spark's log begins with, as `LOG_CONFIG` says."""
_CHATTER = re.compile(
    rb"WARNING: (Using incubator modules: |(A restricted|A terminally deprecated) method in |Use --enable-native-access=|"
    rb"Restricted methods will be |\S+ (has been called by|will be removed in) |Please consider reporting this to )"
    rb"|(NOTE: )?Picked up (JDK_JAVA_OPTIONS|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS): "
    rb"|(Starting )?Streaming TransformWithState\w* Python worker\b"
)
"""What Java, and the workers in which Spark plans, say of themselves."""
_TRACEBACK = b"Traceback (most recent call last):"
_OF_SPARK = re.compile(
    rb'  File ".*/pyspark/(daemon\.py", line \d+, in manager|'
    rb'sql/streaming/python_streaming_source_runner\.py", line \d+, in main)$'
)
"""The frame below all others when a worker ends because Spark has let go of it; what user code raises is not printed so."""
_CHAINED = b"During handling of the above exception, another exception occurred:"
"""What stands between two tracebacks of one worker, with an empty line before and after it."""
_GRACE_S = 0.05
"""For how long there must be silence at the end: what a worker writes takes a moment to get here."""
_LONGEST_GRACE_S = 1.0
_POLL_S = 0.001

LOG_CONFIG = Path(__file__).with_name("log4j2.properties")


class Sorter:
    """Takes pieces of text as they come, and gives whole lines away."""

    def __init__(self, log: Callable[[str], None], pass_on: Callable[[bytes], None]) -> None:
        self._log, self._pass_on = log, pass_on
        self._rest = b""
        self._has_chattered = False
        self._held = 0
        """How many tracebacks have begun that do not show yet whose they are: workers that end together write at once."""
        self._open = 0
        """How many of Spark's tracebacks have not come to their last line."""
        self._is_between = self._is_chained = False
        """Whether one of Spark's tracebacks has come to its end, and whether another of the same worker follows."""

    def take(self, text: bytes) -> None:
        *lines, self._rest = (self._rest + text).split(b"\n")
        for line in lines:
            self._sort(line)

    def end(self) -> None:
        """Give away what is no whole line. A traceback of which nothing came is a worker's that ended with its JVM."""
        rest, self._rest = self._rest, b""
        if rest and not rest.startswith(_MARK):
            self._release()
            self._pass_on(rest)
        else:
            self._log_held()

    def _sort(self, line: bytes) -> None:
        ours, mark, logged = line.partition(_MARK)
        if mark:
            self._log(logged.decode(errors="replace"))
            if ours:  # half a line, in the middle of which Spark has logged
                self._pass_on(ours)
            return
        if self._is_between and line in (b"", _CHAINED):
            self._is_chained |= line == _CHAINED
            self._log(line.decode())
            return
        if line == _TRACEBACK:
            self._held += 1
            return
        if self._open or (self._held and (self._is_chained or _OF_SPARK.match(line))):
            self._open += self._held
            self._log_held()
            self._is_chained, self._is_between = False, not line.startswith(b" ")
            self._open -= self._is_between
            self._log(line.decode(errors="replace"))
            return
        self._is_between = self._is_chained = False
        self._release()
        had_chattered, self._has_chattered = self._has_chattered, _CHATTER.match(line) is not None
        if self._has_chattered:
            self._log(line.decode(errors="replace"))
        elif line or not had_chattered:  # workers leave an empty line behind theirs
            self._pass_on(line + b"\n")

    def _release(self) -> None:
        """Tracebacks that were held are of user code."""
        self._pass_on((_TRACEBACK + b"\n") * self._held)
        self._held = 0

    def _log_held(self) -> None:
        """Tracebacks that were held are Spark's."""
        for _ in range(self._held):
            self._log(_TRACEBACK.decode())
        self._held = 0


@contextmanager
def sorted_for_children() -> Iterator[None]:
    """Let processes that are started in here write to a pipe, from which what they write is sorted as long as they live.

    This process writes there too while it is in here, and that is passed on. When it is gone nobody waits for a reader:
    writing to the pipe fails, and Java and Python take no offence.
    """
    try:
        kept = os.dup(_STDERR)
    except OSError:  # closed: whatever is written goes nowhere
        yield
        return
    reading, writing = os.pipe()
    reader = _Reader(reading, kept)
    os.dup2(writing, _STDERR)
    os.close(writing)
    try:
        reader.start()
        yield
    finally:
        os.dup2(kept, _STDERR)
        reader.restored()
        os.close(kept)


class _Reader:
    """The thread that reads the pipe."""

    def __init__(self, reading: int, out: int) -> None:
        self._reading, self._out = reading, out
        self._sorter = Sorter(self._log, self._pass_on)
        self._sorting = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="headwater-stderr", daemon=True)

    def start(self) -> None:
        self._thread.start()
        atexit.register(self._finish)

    def restored(self) -> None:
        """Standard error is again what it was."""
        with self._sorting:
            self._out = _STDERR

    def _run(self) -> None:
        while text := os.read(self._reading, 1 << 16):
            with self._sorting:
                self._sorter.take(text)

    def _finish(self) -> None:
        """Wait at the end of the process for what was written before it."""
        last_s = time.monotonic() + _LONGEST_GRACE_S
        with suppress(OSError):  # Windows cannot look into a pipe
            while self._thread.is_alive() and select.select([self._reading], [], [], _GRACE_S)[0]:
                if time.monotonic() > last_s:
                    break
                time.sleep(_POLL_S)
        with self._sorting:
            self._sorter.end()

    @staticmethod
    def _log(line: str) -> None:
        _LOG.debug("%s", line)

    def _pass_on(self, text: bytes) -> None:
        with suppress(OSError):  # nobody can be told that there is nobody to tell
            while text:
                text = text[os.write(self._out, text) :]
