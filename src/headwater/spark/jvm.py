"""Spark's JVM: brought up beside the main thread, which so stays free for signals, and ended with a program that ends at once.

PySpark's own handler of SIGINT cancels all that Spark runs. It is set when a context is made on the main thread, and only
there. The JVM ignores SIGINT as PySpark starts it, and SIGTERM as it is started here: a signal that goes to all processes
of a group is for the driver, which ends the epoch under way, and then the JVM by its own end.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from pathlib import Path

from pyspark import SparkConf, SparkContext

from headwater.job.signals import before_sudden_end, end_if_asked

_POLL_S = 0.05
_BASH_ENV = "BASH_ENV"


def spark_context(conf: SparkConf) -> SparkContext:
    """The context of this process, made if there is none. A signal that ends the program meanwhile ends its JVM too."""
    made: Future[SparkContext] = Future()

    def make() -> None:
        try:
            made.set_result(SparkContext.getOrCreate(conf))
        except BaseException as error:  # raised where it is waited for
            made.set_exception(error)

    jvm = _Jvm()
    before_sudden_end(jvm.kill)
    with _without_sigterm():
        threading.Thread(target=make, name="headwater-spark", daemon=True).start()
        try:
            while not wait([made], _POLL_S).done:
                end_if_asked()
        except SystemExit:
            logging.getLogger("py4j").setLevel(logging.CRITICAL)  # the connection breaks, as it should
            while not wait([made], _POLL_S).done:
                jvm.kill()
            raise
    context = made.result()
    jvm.is_up()
    return context


@contextmanager
def _without_sigterm() -> Iterator[None]:
    """Let a JVM that is started in here ignore SIGTERM; Spark starts it by a script of bash, which reads this file first."""
    if _BASH_ENV in os.environ:  # somebody else's, who may need it
        yield
        return
    os.environ[_BASH_ENV] = str(Path(__file__).with_name("heeds_no_sigterm.sh"))
    try:
        yield
    finally:
        os.environ.pop(_BASH_ENV, None)


class _Jvm:
    """The JVM among the children of this process, as far as they can be seen: on Linux.

    Elsewhere the JVM ends by itself, when it finds that its driver is gone.
    """

    def __init__(self) -> None:
        self._others = _children(os.getpid(), _parents())
        self._found: set[int] | None = None

    def is_up(self) -> None:
        """Whoever becomes a child from here on is somebody else's."""
        self._found = _children(os.getpid(), _parents()) - self._others

    def kill(self) -> None:
        """End the JVM and all that it has started. Spark's Python workers would end by themselves, unless they are busy."""
        parents = _parents()
        found = _children(os.getpid(), parents) - self._others
        todo = list(found if self._found is None else found & self._found)
        while todo:
            pid = todo.pop()
            todo += _children(pid, parents)
            with suppress(ProcessLookupError):  # it has ended just now
                os.kill(pid, signal.SIGKILL)


def _children(of: int, parents: dict[int, int]) -> set[int]:
    return {pid for pid, parent in parents.items() if parent == of}


def _parents() -> dict[int, int]:
    """The parent of each process."""
    found = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended just now
            found[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    return found
