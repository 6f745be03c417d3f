"""Deaths below the driver: a Python worker, a task that fails, an executor. The job goes on and the result is exact."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import totals_job

import headwater as hw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.spark, pytest.mark.timeout(600)]

FEW_EPOCHS = {"max_rows_per_epoch": 400}
"""For the job on a cluster, each epoch of which takes long."""


class Trouble(totals_job.Totals):
    """Totals that get into trouble at one row, as often as there are tokens in a folder; other tasks are left alone."""

    def __init__(self, tokens: Path, kind: str) -> None:
        self._tokens, self._kind = tokens, kind

    def process(self, event: Any, ctx: Any) -> Iterator[Any]:
        if event.user == "a0":
            for token in sorted(self._tokens.iterdir()):
                token.unlink()
                if self._kind == "raise":
                    raise RuntimeError("trouble")
                os.kill(os.getpid() if self._kind == "worker" else _executor(), signal.SIGKILL)
                signal.pause()
        yield from super().process(event, ctx)


def _executor() -> int:
    """The JVM that runs this Python worker."""
    import psutil

    return next(p.pid for p in psutil.Process().parents() if "java" in p.name())


def _tokens(folder: Path, count: int) -> Path:
    tokens = folder / "tokens"
    tokens.mkdir()
    for number in range(count):
        (tokens / str(number)).touch()
    return tokens


def _expected(log: Path, folder: Path, **settings: Any) -> dict[str, list[dict[str, Any]]]:
    totals_job.build(folder, log=log, engine="local", **settings).run(bounded=True)
    return totals_job.published(folder)


def test_task_that_dies_is_done_again(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    totals_job.write_events(log)
    trouble = Trouble(_tokens(tmp_path, 1), "worker")
    totals_job.build(tmp_path / "spark", log=log, spark=spark, totals=trouble).run(bounded=True)
    assert not list((tmp_path / "tokens").iterdir())
    assert totals_job.published(tmp_path / "spark") == _expected(log, tmp_path / "local")


@pytest.mark.parametrize(
    ("kind", "times", "error"),
    [
        ("worker", 4, "JobError"),
        pytest.param("raise", 1, "UserCodeError", marks=pytest.mark.long),  # tests/spark/test_failures.py has one level
    ],
)
def test_job_whose_tasks_die_too_often_is_started_again(
    kind: str, times: int, error: str, spark: SparkSession, tmp_path: Path
) -> None:
    """A task may die twice; the third time the job fails, and the fourth is in the task's first attempt after that.

    What user code raises fails the job at once.
    """
    log = tmp_path / "log"
    totals_job.write_events(log)
    trouble = Trouble(_tokens(tmp_path, times), kind)
    restart = hw.restart.fixed(1, delay="1 ms")
    job = totals_job.build(tmp_path / "spark", log=log, spark=spark, totals=trouble, restart=restart).run(bounded=True)
    assert not list((tmp_path / "tokens").iterdir())
    assert totals_job.published(tmp_path / "spark") == _expected(log, tmp_path / "local")
    status = job.status()
    assert (status.state, [(r.attempt, r.delay_ms, r.error) for r in status.restarts]) == ("finished", [(1, 1, error)])
    again = totals_job.build(tmp_path / "spark", log=log, spark=spark, restart=restart).run(bounded=True)
    assert again.status().restarts == status.restarts, "the job folder keeps the reasons"


def test_job_whose_sink_is_away_is_started_again_and_publishes_what_was_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    log, away = tmp_path / "log", tmp_path / "away"
    totals_job.write_events(log)
    away.touch()

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if (step, epoch) == (hw.EpochStep.PUBLISHING, 1) and away.exists():
            away.unlink()
            raise ConnectionResetError("away")

    env = totals_job.build(tmp_path / "spark", log=log, spark=spark, restart=hw.restart.fixed(1, delay="1 ms"))
    status = env.run(bounded=True, on_step=on_step).status()
    assert [(r.error, "away" in r.message) for r in status.restarts] == [("JobError", True)]
    assert totals_job.published(tmp_path / "spark") == _expected(log, tmp_path / "local")


def test_executor_killed_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    log = tmp_path / "log"
    totals_job.write_events(log)
    _tokens(tmp_path, 1)
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert not list((tmp_path / "tokens").iterdir())
    assert totals_job.published(tmp_path / "spark") == _expected(log, tmp_path / "local", **FEW_EPOCHS)


def main() -> None:
    """The job on a cluster of two executor processes."""
    import pyspark
    from pyspark.sql import SparkSession

    from headwater.spark.java import find_java

    folder = Path(sys.argv[1])
    os.environ["JAVA_HOME"] = str(find_java())
    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    path = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(path)  # executors import the job's module
    config = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": os.environ.get("SPARK_SUBMIT_OPTS", ""),  # a quick start, as the driver has
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in config.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    trouble = Trouble(folder / "tokens", "executor")
    totals_job.build(folder / "spark", log=folder / "log", spark=session, totals=trouble, **FEW_EPOCHS).run(
        bounded=True
    )
    session.stop()


if __name__ == "__main__":
    main()
