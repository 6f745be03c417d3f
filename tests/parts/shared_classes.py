"""Spark's classes as a JVM has them in memory, kept in a file that the JVMs of the tests map instead of loading them anew.

Run as a program it makes the file: a job is run, and its JVM writes down what it has loaded when it ends. A JVM that cannot
use the file, since it is another Java or Spark has changed, does without.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import headwater as hw

ARCHIVE = Path(__file__).parents[2] / "build" / "spark-classes.jsa"
_OPTIONS = "SPARK_SUBMIT_OPTS"
"""What Spark's launcher adds to the command of a driver's JVM, and of no other."""
_QUIET = "-Xlog:cds*=off"
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""A JVM that lives some minutes had better compile quickly than well: a job in a new one takes two thirds of the time."""


def use() -> None:
    """Have the JVMs that this process and its children start come up quickly; a job in a new one takes 13 s of CPU, not 21."""
    os.environ.setdefault("JDK_JAVA_OPTIONS", QUICK_START)
    if ARCHIVE.exists():
        os.environ.setdefault(_OPTIONS, f"-XX:SharedArchiveFile={ARCHIVE} {_QUIET}")


def make() -> None:
    """Run the job in a process of its own, and put the file in its place when it is whole."""
    ARCHIVE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ARCHIVE.parent) as folder:
        made = Path(folder) / "made.jsa"
        options = {"JDK_JAVA_OPTIONS": QUICK_START, _OPTIONS: f"-XX:ArchiveClassesAtExit={made} {_QUIET}"}
        # What it says comes to its end when the JVM, which writes the file last, has ended.
        done = subprocess.run(
            [sys.executable, "-m", __spec__.name, folder],
            env={**os.environ, **options},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stdout)
        if made.exists():
            made.rename(ARCHIVE)


class _Count(hw.KeyedProcessFunction):
    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.n.set(self.n.get() + 1)
        yield {"k": event.k, "n": self.n.get()}


def run_job(folder: Path) -> None:
    """Two levels with state, a few epochs, files."""
    env = hw.Environment("classes", job_dir=folder / "job", max_rows_per_epoch=10, checkpoint_interval="1 ms")
    stream: Any = env.from_rows([(f"k{n % 7}", n) for n in range(30)], "k string, n long")
    for name in ("first", "second"):
        stream = stream.key_by("k").process(_Count(), "k string, n long", name=name)
    stream.sink(hw.connectors.files(folder / "out"))
    env.run(bounded=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_job(Path(sys.argv[1]))
    else:
        make()
