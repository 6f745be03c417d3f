"""A program that runs a job, as a test starts it, sends it signals, and looks for what it leaves running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import psutil
import signalled_job

_LIMIT_S = 240
_MARK = "HEADWATER_TEST_PROGRAM"


class Program:
    """A program in a group of processes of its own, as a terminal has it."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder, self._mark = folder, uuid.uuid4().hex
        self._process = subprocess.Popen(
            [sys.executable, *arguments],
            env={**os.environ, _MARK: self._mark},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=folder,
            process_group=0,
        )
        self.said = ""
        """What it has written to stderr, when it has ended."""

    @property
    def line(self) -> str:
        """What Headwater has written there."""
        return "".join(line for line in self.said.splitlines(keepends=True) if line.startswith("headwater: "))

    def until_said(self, said: str) -> None:
        """Wait for a line; the job tells the number of each epoch that is published."""
        assert self._process.stdout is not None
        while (line := self._process.stdout.readline()) != f"{said}\n":
            assert line, self._process.communicate()

    def until_next_line(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline(), self._process.communicate()

    def until_held(self) -> None:
        """Wait until an epoch is under way that does not come to its end."""
        deadline = time.monotonic() + _LIMIT_S
        while not (self._folder / "held").exists():
            assert self._process.poll() is None, self._process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def until_it_has_started_others(self) -> None:
        while not psutil.Process(self._process.pid).children():
            time.sleep(0.02)

    def send(self, number: signal.Signals, *, to_group: bool = False) -> None:
        (os.killpg if to_group else os.kill)(self._process.pid, number)

    def kill_jvm(self) -> None:
        next(child for child in psutil.Process(self._process.pid).children() if "java" in child.name()).kill()

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> int:
        """Wait for the end, also that of all that it has started; gives the exit code."""
        try:
            _, self.said = self._process.communicate(timeout=_LIMIT_S)
            deadline = time.monotonic() + 30
            while left := self.left():
                assert time.monotonic() < deadline, f"left running: {left}"
                time.sleep(0.1)
        finally:
            for process in self.left():
                process.kill()
        return self._process.returncode

    def left(self) -> list[psutil.Process]:
        """What still runs of all that it has started, children or not."""
        return [process for process in psutil.process_iter() if self._mark in _environment(process)]


def job_program(folder: Path, engine: str, *more: str) -> Program:
    """One run of the job."""
    return Program(folder, signalled_job.__file__, str(folder), engine, *more)


def _environment(process: psutil.Process) -> str:
    try:
        return "" if process.status() == psutil.STATUS_ZOMBIE else process.environ().get(_MARK, "")
    except psutil.Error:  # it has ended just now, or is somebody else's
        return ""
