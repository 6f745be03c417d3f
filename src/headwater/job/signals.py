"""Ctrl-C and SIGTERM while a program waits for its job in `env.run()`.

The first lets the job stop as `job.stop()` does, and the program then ends with the code that shells give to the signal.
The second ends the process at once, as a kill would, and with it what the process has started. Handlers do no more than
that: they may be called between any two instructions of the main thread.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Self

from headwater.job.engine import Job

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class JobStopped(SystemExit):
    """Raised by `env.run()` when a signal has stopped the job: nobody has to catch it, and blocks of `finally` are run."""


class JobInterrupted(JobStopped, KeyboardInterrupt):
    """The same after Ctrl-C: who goes by KeyboardInterrupt, as test runners do, sees one."""


class Foreground:
    """A job that a program waits for, from before its start: signals come here, unless they were ignored before.

    In another thread than the main one, where signals do not come, it changes nothing.
    """

    def __init__(self, name: str, *, goes_on: bool) -> None:
        """With `goes_on`, a new process goes on where this one was."""
        self._name, self._goes_on = name, goes_on
        self._job: Job | None = None
        self._received: list[signal.Signals] = []
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            _foregrounds.append(self)
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self in _foregrounds:
            _foregrounds.remove(self)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if not self._received or (error is not None and (self._job is not None or not self._ends_process())):
            return
        _say(_standing(self._name, self._job, self._received, goes_on=self._goes_on))
        if self._ends_process():
            raise self._ending() from error

    def watch(self, job: Job) -> None:
        """Let signals stop this job; one may have come while it was started."""
        self._job = job
        if self._received:
            job.begin_stop(None, drain=False)

    def end_if_asked(self) -> None:
        """Raise the end if a signal has come before the job is started."""
        if self._received and self._job is None and self._ends_process():
            raise self._ending()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self._received.append(signal.Signals(number))
        if len(self._received) == 1:
            if self._job is not None:
                self._job.begin_stop(None, drain=False)
        elif self._ends_process():
            self._end_at_once()
        else:
            raise KeyboardInterrupt

    def _ends_process(self) -> bool:
        """Whether the process ends with the job: Ctrl-C in an interpreter or a notebook is for the job alone."""
        is_interactive = hasattr(sys, "ps1") or bool(sys.flags.interactive)
        return not is_interactive or signal.SIGTERM in self._received

    def _ending(self) -> JobStopped:
        number = self._received[-1]
        return (JobInterrupted if number is signal.SIGINT else JobStopped)(_code(number))

    def _end_at_once(self) -> None:
        for act in _last_acts:
            with suppress(Exception):  # the others are to be done too
                act()
        _say(_standing_at_once(self._name, self._job, self._received, goes_on=self._goes_on), begins_anew=True)
        with suppress(Exception):  # what is printed may go into a pipe that nobody reads
            sys.stdout.flush()
        os._exit(_code(self._received[-1]))


_foregrounds: list[Foreground] = []
"""Those of the main thread, newest last."""
_last_acts: list[Callable[[], None]] = []


def before_sudden_end(act: Callable[[], None]) -> None:
    """Let this be done before the process ends at once: processes that it has started end with it."""
    _last_acts.append(act)


def end_if_asked() -> None:
    """Called again and again where the start of a job takes long: raise the end of the program if a signal asks for it."""
    if _foregrounds and threading.current_thread() is threading.main_thread():
        _foregrounds[-1].end_if_asked()


def _code(number: signal.Signals) -> int:
    """As shells have it."""
    return 128 + number


def _standing(name: str, job: Job | None, received: list[signal.Signals], *, goes_on: bool) -> str:
    """Where a job stands that was stopped, and how to go on."""
    by = received[-1].name
    if job is None:
        return f"job {name} ended before it was started ({by}); {_way_on(goes_on=goes_on)}"
    status = job.status()
    if status.state == "finished":
        return f"job {name} came to its end with epoch {status.published} ({by}); everything is published"
    is_begun = status.published >= 0
    where = f"after epoch {status.published}" if is_begun else "before its first epoch"
    said = [
        f"job {name} stopped {where} ({by})",
        "everything up to it is published" if is_begun else "nothing is published",
        _way_on(goes_on=goes_on),
    ]
    if job.given_up is not None:
        said.insert(1, f"the next one was given up: {job.given_up}")
    return "; ".join(said)


def _standing_at_once(name: str, job: Job | None, received: list[signal.Signals], *, goes_on: bool) -> str:
    """Where a job stands that was ended by a second signal."""
    published = -1 if job is None else job.status().published
    where = f" after epoch {published}" if published >= 0 else ""
    by = ", ".join(number.name for number in received)
    return f"job {name} ended at once{where} ({by}); what was under way is given up; {_way_on(goes_on=goes_on)}"


def _way_on(*, goes_on: bool) -> str:
    if goes_on:
        return "run it again with the same job_dir to go on"
    return "without a job_dir on Spark only its output is kept: run again, it begins from the start"


def _say(line: str, *, begins_anew: bool = False) -> None:
    """With `begins_anew` below what a terminal may show of the job's progress."""
    with suppress(Exception):  # the end of the program does not hang on somebody who reads
        begin = "\n" if begins_anew and sys.stderr.isatty() else ""
        sys.stderr.write(f"{begin}headwater: {line}\n")
        sys.stderr.flush()
