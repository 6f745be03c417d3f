"""What a user sees in a terminal when a function fails on Spark: the own lines and the own error, nothing of Java's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

JOB = """\
import sys

import headwater as hw


class Sums(hw.KeyedProcessFunction):
    def process(self, event, ctx):
        print("seen", event.v)
        sys.stdout.write(f"half {event.v} ")
        sys.stdout.flush()
        print("and half", event.v)
        if event.v == 2:
            raise ZeroDivisionError("no luck")
        yield event


env = hw.Environment("sums", parallelism=1)
rows = env.from_rows([("a", 1, 1000), ("b", 2, 2000)], "k string, v int, ts long", hw.Watermarks.monotonous("ts"))
rows.key_by("k").process(Sums(), "k string, v int, ts long").with_uid("sums").collect()
"""


def test_failing_function_shows_its_own_lines_and_nothing_of_java(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(JOB)
    done = subprocess.run(
        [sys.executable, str(job)],
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 1, done.stderr
    printed = ["half 1 and half 1", "half 2 and half 2", "seen 1", "seen 2"]
    lines = done.stderr.splitlines()
    assert sorted(line for line in lines if line in printed) == printed, done.stderr
    shown = [line for line in lines if line not in printed]
    assert len(shown) <= 15, done.stderr
    assert not any(word in done.stderr for word in ("java", "py4j", "org.apache", "pyspark", "WARN")), done.stderr
    failed = "step 'sums' failed for key 'b' at timestamp 2000, 1970-01-01 00:00:02.000: ZeroDivisionError: no luck"
    assert f"headwater.errors.UserCodeError: {failed}" in shown
    assert f'  File "{job}", line 13, in process' in shown
