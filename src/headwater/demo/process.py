"""The job as a child process: started, watched through the files of its folder, killed without warning."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import headwater as hw

_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
"""A JVM that lives half a minute had better compile quickly than well: a start takes 21 s of its CPU time, not 32 s."""


@dataclass(frozen=True)
class Standing:
    """Where the job stands, as its folder tells it."""

    epoch: int
    """The newest published epoch; -1 before the first."""
    events: int
    """Events read in published epochs."""
    planned: int
    """The newest epoch that Spark began."""
    committed: int
    """The newest epoch that Spark finished."""
    staged: int
    """Files written for epochs that are not published."""


class JobProcess:
    """One run of the job, in a session of its own, so that all its processes can be found and killed."""

    def __init__(self, folder: Path, rows_per_epoch: int) -> None:
        self._folder = folder
        command = [sys.executable, "-m", "headwater.demo.job", str(folder), "--rows-per-epoch", str(rows_per_epoch)]
        java_options = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {_JAVA_OPTIONS}"
        with log_file(folder).open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  our own module
                command,
                env={**os.environ, "JDK_JAVA_OPTIONS": java_options},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def exit_code(self) -> int | None:
        """How the run ended; None while it goes on."""
        return self._process.poll()

    def stop(self) -> None:
        """Ask the job to stop, and wait until its process has ended."""
        hw.control.request_stop(self._folder / "job")
        self._process.wait()

    def kill(self) -> int:
        """SIGKILL every process of the run: Python, the JVM and Spark's Python workers. Gives their number."""
        killed: set[int] = set()
        # Again until none is left: a process may have forked while the list was read.
        while alive := _session(self._process.pid):
            for pid in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            killed |= alive
            time.sleep(0.01)
        self._process.kill()
        self._process.wait()
        return len(killed)


def standing(folder: Path) -> Standing:
    """Read the job folder and the sinks' staging folders; nothing is asked of the job itself."""
    found = hw.control.jobs(folder / "job")
    if not found:
        return Standing(epoch=-1, events=0, planned=-1, committed=-1, staged=0)
    job = found[0]
    staged = [path for path in folder.glob("*/_headwater/staging/*") if int(path.name[:10]) > job.published]
    return Standing(
        epoch=job.published,
        events=sum(at for name in ("clicks", "orders") for at in job.positions.get(name, {}).values()),
        planned=job.planned,
        committed=job.committed,
        staged=len(staged),
    )


def log_file(folder: Path) -> Path:
    """Where Spark's and the job's own chatter goes."""
    return folder / "spark.log"


def log_tail(folder: Path, lines: int = 30) -> str:
    """The last lines of the chatter."""
    text = log_file(folder).read_text(errors="replace")
    return "\n".join([line for line in text.splitlines() if line.strip()][-lines:])


def _session(leader: int) -> set[int]:
    """The live processes of a session (on Linux). Spark's Python workers leave the process group: killpg misses them."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state not in "ZX":
                found.add(int(stat.parent.name))
    return found
