"""What a user sees in a terminal when a job fails on Spark: the own lines and the own error, nothing of Java's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

JOB = """\
import sys
import time
from pathlib import Path

import headwater as hw

ROWS = [("a", 1, 1000), ("b", 2, 2000)]
SCHEMA = "k string, v int, ts long"


class Held(hw.ProcessFunction):
    def process(self, event, ctx):
        if event.v == 2:
            Path("held").touch()
            time.sleep(100)
        yield event


def lose_the_disk(step, epoch):
    if step is hw.EpochStep.PUBLISHED:
        while not Path("held").exists():
            time.sleep(0.01)
        raise OSError("the disk is away")


env = hw.Environment("published", parallelism=1, max_rows_per_epoch=1)
env.from_rows(ROWS, SCHEMA).process(Held(), SCHEMA).sink(hw.connectors.files("out"))
try:
    env.run(on_step=lose_the_disk)
except hw.JobError as error:
    print(error)


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
rows = env.from_rows(ROWS, SCHEMA, hw.Watermarks.monotonous("ts"))
rows.key_by("k").process(Sums(), SCHEMA).with_uid("sums").collect()
"""


def test_failures_in_a_function_and_while_an_epoch_runs_show_nothing_of_java(tmp_path: Path) -> None:
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
    assert done.stdout.startswith("job 'published' stopped: OSError: the disk is away\n"), done.stdout
    printed = ["half 1 and half 1", "half 2 and half 2", "seen 1", "seen 2"]
    lines = done.stderr.splitlines()
    assert sorted(line for line in lines if line in printed) == printed, done.stderr
    shown = [line for line in lines if line not in printed]
    assert len(shown) <= 15, done.stderr
    assert not any(word in done.stderr for word in ("java", "py4j", "org.apache", "pyspark", "WARN")), done.stderr
    failed = "step 'sums' failed for key 'b' at timestamp 2000, 1970-01-01 00:00:02.000: ZeroDivisionError: no luck"
    assert f"headwater.errors.UserCodeError: {failed}" in shown
    assert f'  File "{job}", line 41, in process' in shown
