"""The job under supervision: its driver is started again whenever it is gone, and nothing is waited for without end."""

from __future__ import annotations

import queue
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.driver import Driver, chatter, session

LIMIT_S = 400
"""For any one wait; a driver starts in 15 s on two idle cores, in two minutes when others use them too."""
_DEAD_STARTS = 4
"""Starts in a row that may end without an epoch before the job is given up."""


class ChaosFailed(Exception):
    """The job did not do what it must."""


class SupervisedDriver:
    """The driver that runs now, and those before it."""

    def __init__(self, folder: Path, disk: Path, tell: Callable[[str], None], program: str = "tests.chaos.job") -> None:
        self._folder, self._disk, self._tell, self._program = folder, disk, tell, program
        self._current: Driver | None = None
        self._gone: list[Driver] = []
        self._dead_starts = 0
        self.bounded = False
        self.is_running = False
        """Whether the driver has come to its first step of an epoch."""
        self.starts = 0
        self.restarts: Counter[str] = Counter()
        """How often a driver started the job again by itself, by the error."""
        self.steps: Counter[str] = Counter()
        """How often each step of an epoch was made."""
        self.published = -1
        self.finished = False
        self.last_words: list[dict[str, Any]] = []
        """Reasons of restarts and the error of a driver that gave up, since `forget` was called."""

    @property
    def driver(self) -> Driver:
        assert self._current is not None
        return self._current

    def start(self) -> None:
        self.starts += 1
        self.is_running = False
        self._current = Driver(self._folder, self._disk, program=self._program, bounded=self.bounded)

    def let_go(self) -> None:
        """Take the driver for dead, though some of its processes may not know yet."""
        self._gone.append(self.driver)
        self._current = None

    def kill(self) -> None:
        """Kill the driver with all its processes."""
        self.driver.kill_all()
        self.hear(0)
        self._current = None

    def kill_all(self) -> None:
        """Leave no process behind."""
        for driver in [*self._gone, *([self._current] if self._current else [])]:
            driver.kill_all()
        self._gone, self._current = [], None

    def ghosts(self) -> int:
        """How many processes of drivers are left that are gone."""
        return sum(len(session(driver.pid)) for driver in self._gone)

    def forget(self) -> None:
        """Start to listen anew; what drivers could not do before, as because of a damaged file, does not count."""
        self.last_words = []
        self._dead_starts = 0

    def hear(self, seconds: float) -> dict[str, Any] | None:
        """The next thing that the driver says."""
        try:
            said = self.driver.told.get(timeout=seconds) if seconds else self.driver.told.get_nowait()
        except queue.Empty:
            return None
        if "step" in said:
            self.is_running = True
            self.steps[said["step"]] += 1
        if said.get("step") == "PUBLISHED":
            self.published = max(self.published, said["epoch"])
            self._dead_starts = 0
        elif "restart" in said or "failed" in said:
            self.restarts[said.get("restart", "given up")] += 1
            self.last_words.append(said)
            if said.get("restart", said.get("failed")) == "JobFolderDamaged":
                self._dead_starts = _DEAD_STARTS
        elif "ended" in said:
            self.finished = said["ended"] == "finished"
        return said

    def wait_for(self, what: str, done: Callable[[], bool], *, limit_s: float = LIMIT_S, revive: bool = True) -> None:
        """Listen until it is so; start the driver again when it is gone, if it may."""
        deadline = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > deadline:
                raise ChaosFailed(f"no {what} within {limit_s:.0f} s; the log is {chatter(self._folder)}")
            if self.hear(0.05) is None and self.driver.exit_code() is not None and not self.finished:
                while self.hear(0) is not None:
                    pass
                if done() or not revive:
                    continue
                self._revive()

    def _revive(self) -> None:
        self._dead_starts += 1
        if self._dead_starts > _DEAD_STARTS:
            raise ChaosFailed(f"the driver cannot go on: {self.last_words[-1:]}; the log is {chatter(self._folder)}")
        self._tell(
            f"the driver ended with {self.driver.exit_code()} and is started again: {_first_line(self.last_words)}"
        )
        self.kill()
        self.start()


def _first_line(words: list[dict[str, Any]]) -> str:
    return words[-1]["message"].splitlines()[0][:300] if words else "it said nothing"
