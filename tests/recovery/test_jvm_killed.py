"""The JVM killed under a driver that lives on: no restart strategy can help, so the driver ends and says so."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import totals_job

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(900)]


def test_driver_without_its_jvm_ends_and_another_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    totals_job.write_events(log)
    command = [sys.executable, __file__, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, cwd=tmp_path)
    assert done.returncode == 1, done.stdout[-3000:]
    assert "EngineGone: job 'totals' stopped: Spark's JVM has died" in done.stderr
    totals_job.build(tmp_path / "spark", log=log, spark=spark).run(bounded=True)
    totals_job.build(tmp_path / "local", log=log, engine="local").run(bounded=True)
    assert totals_job.published(tmp_path / "spark") == totals_job.published(tmp_path / "local")


def main() -> None:
    """A driver that would be started again for ever, and was once before its JVM is gone."""
    import psutil

    failed = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == (hw.EpochStep.COMMITTED, 0) and not failed:
            failed.append(epoch)
            raise RuntimeError("once")
        if (step, epoch) == (hw.EpochStep.STAGED, 1):
            jvm = next(child.pid for child in psutil.Process().children() if "java" in child.name())
            os.kill(jvm, signal.SIGKILL)

    folder, restart = Path(sys.argv[1]), hw.restart.exponential(initial="1 ms")
    totals_job.build(folder / "spark", log=folder / "log", restart=restart).run(bounded=True, on_step=on_step)


if __name__ == "__main__":
    main()
