"""Ctrl-C and SIGTERM: a job that a program waits for stops in an orderly way, and goes on exactly where it stood."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import signalled_job
from random_signals import torment
from signalled import Program, job_program
from tests.parts.waiting import until

import headwater as hw
from headwater.savepoints.files import Savepoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.recovery, pytest.mark.timeout(900)]

INT, TERM = signal.SIGINT, signal.SIGTERM
ROWS = 200
STOPPED = re.compile(
    r"headwater: job counts stopped after epoch (\d+) \((\w+)\); everything up to it is published; (.*)\n"
)
GOES_ON = "run it again with the same job_dir to go on"
BEGINS = "without a job_dir on Spark only its output is kept: run again, it begins from the start"


def check_published(folder: Path, epochs: int) -> None:
    """What can be seen is all of these epochs and nothing else, also of the files that roll."""
    rows = signalled_job.expected(min(ROWS, signalled_job.ROWS_PER_EPOCH * epochs))
    assert signalled_job.published(folder) == {"each": rows, "rolled": rows}


@pytest.mark.parametrize(
    ("number", "to_group", "code"), [(INT, False, 130), (INT, True, 130), (TERM, False, 143), (TERM, True, 143)]
)
def test_a_local_job_finishes_its_epoch_and_publishes_what_it_held_back(
    number: signal.Signals, to_group: bool, code: int, tmp_path: Path
) -> None:
    signalled_job.write_events(tmp_path, ROWS)
    (tmp_path / "hold").write_text("50")
    program = job_program(tmp_path, "local")
    program.until_held()
    program.send(number, to_group=to_group)
    time.sleep(0.2)
    (tmp_path / "hold").unlink()
    assert program.end() == code
    said = STOPPED.fullmatch(program.said)
    assert said is not None, program.said
    assert said.groups() == ("2", number.name, BEGINS)
    check_published(tmp_path, 3)
    assert (tmp_path / "cleaned-up").exists()


def test_a_second_signal_ends_a_local_job_at_once(tmp_path: Path) -> None:
    signalled_job.write_events(tmp_path, ROWS)
    (tmp_path / "hold").write_text("50")
    program = job_program(tmp_path, "local")
    program.until_held()
    program.send(INT)
    time.sleep(0.2)
    assert not program.has_ended()
    program.send(TERM)
    assert program.end() == 143
    ended = "headwater: job counts ended at once after epoch 1 (SIGINT, SIGTERM); what was under way is given up; "
    assert program.said == f"{ended}{BEGINS}\n"


def test_ctrl_c_in_an_interpreter_gives_the_job_back(tmp_path: Path) -> None:
    signalled_job.write_events(tmp_path, ROWS)
    program = job_program(tmp_path, "local", "interactive")
    program.until_said("2")
    program.send(INT)
    program.until_said("stopped")
    assert program.end() == 0
    assert STOPPED.fullmatch(program.said), program.said


def test_a_job_that_fails_while_it_stops_says_why(tmp_path: Path) -> None:
    signalled_job.write_events(tmp_path, ROWS, bad=50)
    (tmp_path / "hold").write_text("50")
    program = job_program(tmp_path, "local")
    program.until_held()
    program.send(INT)
    time.sleep(0.2)
    (tmp_path / "hold").unlink()
    assert program.end() == 1
    assert "headwater.errors.UserCodeError: step 'count' failed for key 'bad': ValueError: a bad user" in program.said
    assert "stopped" not in program.said


@pytest.fixture
def interrupts() -> Iterator[None]:
    """SIGINT interrupts, also in a process that was started in the background, where it is ignored."""
    before = signal.signal(INT, signal.default_int_handler)
    yield
    signal.signal(INT, before)


def interrupt_soon() -> None:
    def interrupt() -> None:
        time.sleep(0.3)
        os.kill(os.getpid(), INT)

    threading.Thread(target=interrupt).start()


def stop_after_an_interrupt(env: hw.Environment, folder: Path) -> None:
    """As a user does who waits for the job, and saves it after Ctrl-C."""
    (folder / "hold").write_text("50")
    job = env.start()
    until((folder / "held").exists, job)
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        job.wait()
    assert not job.wait(0.2), "an interrupted wait is not the end of the job"
    (folder / "hold").unlink()
    until(lambda: job.status().published >= 4, job)
    job.stop(savepoint=folder / "saved")
    last = job.status()
    assert (last.state, Savepoint.open(folder / "saved").description.epoch) == ("stopped", last.published)
    check_published(folder, last.published + 1)


@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_wait_leaves_a_local_job_that_stops_with_a_savepoint(tmp_path: Path) -> None:
    signalled_job.write_events(tmp_path, ROWS)
    stop_after_an_interrupt(signalled_job.build(tmp_path, engine="local"), tmp_path)


@pytest.mark.spark
@pytest.mark.usefixtures("interrupts")
def test_an_interrupted_wait_leaves_a_job_on_spark_that_stops_with_a_savepoint(
    spark: SparkSession, tmp_path: Path
) -> None:
    signalled_job.write_events(tmp_path, ROWS)
    stop_after_an_interrupt(signalled_job.build(tmp_path), tmp_path)


@pytest.mark.spark
def test_an_epoch_that_takes_too_long_is_given_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headwater.spark.engine._STOP_TIMEOUT_S", 0.5)
    signalled_job.write_events(tmp_path, ROWS)
    (tmp_path / "hold").write_text("50")
    job = signalled_job.build(tmp_path).start()
    until((tmp_path / "held").exists, job)
    job.stop()
    assert (job.status().state, job.status().published, job.given_up) == ("stopped", 1, "it took longer than 0.5 s")
    check_published(tmp_path, 2)
    (tmp_path / "hold").unlink()
    signalled_job.build(tmp_path).run(bounded=True)
    check_published(tmp_path, ROWS // signalled_job.ROWS_PER_EPOCH)


@pytest.mark.spark
def test_a_job_on_spark_is_exact_after_each_kind_of_signal(spark: SparkSession, tmp_path: Path) -> None:
    """One job: Ctrl-C to all its processes in the middle of an epoch, SIGTERM and a JVM that dies, a second Ctrl-C.

    SIGTERM to all of them is sent to a local job above, and among random signals in `make test-long`.
    """
    signalled_job.write_events(tmp_path, ROWS)
    hold, held = tmp_path / "hold", tmp_path / "held"

    hold.write_text("50")
    program = job_program(tmp_path, "spark")
    program.until_held()
    program.send(INT, to_group=True)
    time.sleep(0.5)
    hold.unlink()
    assert program.end() == 130
    said = STOPPED.fullmatch(program.said)
    assert said is not None, program.said
    assert said.groups() == ("2", INT.name, GOES_ON)
    check_published(tmp_path, 3)
    held.unlink()

    hold.write_text("70")
    program = job_program(tmp_path, "spark")
    program.until_held()
    program.send(TERM)
    program.kill_jvm()
    assert program.end() == 143
    given_up = "the next one was given up: Spark was ended at the same time; everything up to it is published"
    assert program.line == f"headwater: job counts stopped after epoch 2 (SIGTERM); {given_up}; {GOES_ON}\n"
    check_published(tmp_path, 3)

    held.unlink()
    hold.write_text("90")
    program = job_program(tmp_path, "spark")
    program.until_held()
    program.send(INT)
    time.sleep(0.5)
    assert not program.has_ended()
    program.send(INT)
    assert program.end() == 130
    ended = "headwater: job counts ended at once after epoch 3 (SIGINT, SIGINT); what was under way is given up; "
    assert program.said == f"{ended}{GOES_ON}\n"

    hold.unlink()
    signalled_job.build(tmp_path).run(bounded=True)
    check_published(tmp_path, ROWS // signalled_job.ROWS_PER_EPOCH)


@pytest.mark.spark
@pytest.mark.parametrize("number", [INT, TERM])
def test_a_signal_while_spark_comes_up_ends_the_program_and_the_jvm(number: signal.Signals, tmp_path: Path) -> None:
    signalled_job.write_events(tmp_path, ROWS)
    program = job_program(tmp_path, "spark")
    program.until_it_has_started_others()
    time.sleep(random.Random(number).random())
    program.send(number, to_group=number is INT)
    assert program.end() == 128 + number
    assert program.said == f"headwater: job counts ended before it was started ({number.name}); {GOES_ON}\n"


@pytest.mark.spark
@pytest.mark.parametrize("number", [INT, TERM])
def test_the_demo_ends_with_the_job_that_it_runs(number: signal.Signals, tmp_path: Path) -> None:
    as_in_terminals = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    demo = "runpy.run_module('headwater.demo', run_name='__main__')"
    program = Program(tmp_path, "-c", as_in_terminals + demo, "--events", "1000")
    program.until_it_has_started_others()
    program.send(number, to_group=True)
    assert program.end() == 128 + number
    assert "Traceback" not in program.said


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(3600)
def test_signals_at_a_hundred_random_moments_leave_exact_output(spark: SparkSession, tmp_path: Path) -> None:
    ends = torment(tmp_path, moments=100, seed=7, tell=print)
    assert ends.total() == 100
    assert ends["local: stopped"] > 20
    assert ends["spark: stopped"] > 10
