"""The job's driver as a child process: started, listened to, found with all its processes, killed."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pyspark

_PROJECT = Path(__file__).parents[2]
_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""A JVM that lives a minute had better compile quickly than well."""
_SPARK = "org.apache.spark.deploy.SparkSubmit"
"""The class that Spark's JVM runs."""


class Driver:
    """One run of the driver program, in a session of its own, so that all its processes can be found."""

    def __init__(self, folder: Path, disk: Path, *, program: str, bounded: bool = False) -> None:
        command = [sys.executable, "-m", program, str(folder), str(disk), *(["--bounded"] * bounded)]
        with chatter(folder).open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=_environment(folder),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.told: queue.Queue[dict[str, Any]] = queue.Queue()
        """What the driver says, see `job.drive`."""
        self._listener = threading.Thread(target=self._listen, name="listener", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def exit_code(self) -> int | None:
        """How the run ended, after all that it said was heard; None while it goes on."""
        code = self._process.poll()
        if code is not None:
            self._listener.join(10)
        return code

    def jvms(self) -> list[int]:
        """Spark's own JVM, once there is one; the `java` that is asked for its version before it does not count."""
        return [p.pid for p in _children(self._process.pid) if _name(p) == "java" and _SPARK in _arguments(p)]

    def executors(self) -> list[int]:
        """The executors' JVMs."""
        return [p.pid for jvm in self.jvms() for p in _children(jvm) if _name(p) == "java"]

    def workers(self) -> list[int]:
        """Python below a JVM: the daemons of the executors and their workers, and what plans epochs beside the driver."""
        below = [p for jvm in self.jvms() for p in _children(jvm, recursive=True)]
        return [p.pid for p in below if _name(p).startswith("python")]

    def kill_all(self) -> None:
        """SIGKILL every process of the session, and wait until none is left."""
        deadline = time.monotonic() + 60
        while alive := session(self._process.pid):
            # Again until none is left: a process may have forked while the list was read.
            for pid in alive:
                signal_to(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                raise TimeoutError(f"processes {sorted(alive)} of driver {self._process.pid} do not end")
            time.sleep(0.02)
        self._process.wait()
        self._listener.join(10)
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # a line that a kill cut off
                self.told.put(json.loads(line))


def chatter(folder: Path) -> Path:
    """Where Spark's and the driver's own log goes."""
    return folder / "spark.log"


def session(leader: int) -> set[int]:
    """The live processes of a session. Spark's Python workers leave their process group, but not the session."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = stat.read_text().rpartition(")")[2].split()[:4]
            if int(of) == leader and state not in "ZX":
                found.add(int(stat.parent.name))
    return found


def signal_to(pid: int, number: signal.Signals) -> bool:
    """Whether there was still a process to send the signal to."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def _children(pid: int, *, recursive: bool = False) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _arguments(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _environment(folder: Path) -> dict[str, str]:
    """Everything that Spark leaves behind when it is killed comes to lie in the folder."""
    path = os.pathsep.join([str(_PROJECT), str(_PROJECT / "src"), os.environ.get("PYTHONPATH", "")])
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    java = f"{os.environ.get('JDK_JAVA_OPTIONS', '')} {_JAVA_OPTIONS} -Djava.io.tmpdir={temporary}"
    return {
        **os.environ,
        "PYTHONPATH": path,
        "JDK_JAVA_OPTIONS": java,
        "SPARK_HOME": str(_spark_home(folder)),
        "SPARK_LOCAL_DIRS": str(temporary),
        "TMPDIR": str(temporary),
    }


def _spark_home(folder: Path) -> Path:
    """Spark's folder as links: executors write into the `work` folder beside its jars."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        for part in Path(pyspark.__file__).parent.iterdir():
            if part.name != "work":
                (home / part.name).symlink_to(part)
    return home
