"""Signals while a program waits for its job, as far as one process can show it; tests/recovery has the rest."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator

import pytest

import headwater as hw
from headwater.job.signals import JobInterrupted, JobStopped, end_if_asked

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of a program that was started in a terminal, whatever this one was started in."""
    before = [signal.signal(signal.SIGINT, signal.default_int_handler), signal.signal(signal.SIGTERM, signal.SIG_DFL)]
    yield
    for number, handler in zip(SIGNALS, before, strict=True):
        signal.signal(number, handler)


def endless() -> hw.Environment:
    env = hw.Environment("numbers", engine="local", checkpoint_interval="1 ms")
    env.source(hw.connectors.generator(lambda n: (n,), rate=1000), "n long").sink(hw.connectors.memory())
    return env


def signalled(env: hw.Environment, *numbers: signal.Signals) -> hw.Job:
    """Run a job that gets signals after its first epoch."""
    waiting = list(numbers)

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED and waiting:
            os.kill(os.getpid(), waiting.pop(0))

    return env.run(on_step=on_step)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_job_and_ends_the_program(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with pytest.raises(JobStopped) as ended:
        signalled(endless(), number)
    assert ended.value.code == code
    assert isinstance(ended.value, SystemExit)
    assert isinstance(ended.value, KeyboardInterrupt) is (number is signal.SIGINT)
    assert [signal.getsignal(number) for number in SIGNALS] == before
    line = capsys.readouterr().err
    assert line.startswith("headwater: job numbers stopped after epoch ")
    assert f"({number.name})" in line
    assert line.endswith("only its output is kept: run again, it begins from the start\n")


def test_in_an_interpreter_the_job_is_returned(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert signalled(endless(), signal.SIGINT).status().state == "stopped"
    assert "job numbers stopped after epoch" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        signalled(endless(), signal.SIGTERM)
    assert ended.value.code == 143


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with pytest.raises(JobInterrupted):
        signalled(endless(), signal.SIGTERM, signal.SIGINT)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


def test_another_thread_handles_no_signals() -> None:
    seen = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        seen.append([signal.getsignal(number) for number in SIGNALS])

    env = hw.Environment("few", engine="local")
    env.from_rows([(1,)], "n long").sink(hw.connectors.memory())
    thread = threading.Thread(target=env.run, kwargs={"on_step": on_step})
    thread.start()
    thread.join(60)
    assert seen[0] == [signal.default_int_handler, signal.SIG_DFL]


def test_a_signal_before_the_start_ends_the_program_where_the_start_asks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(*_: object) -> None:
        end_if_asked()
        os.kill(os.getpid(), signal.SIGTERM)
        end_if_asked()

    monkeypatch.setattr("headwater.local.engine.LocalEngine.start", start)
    with pytest.raises(JobStopped) as ended:
        endless().run()
    assert ended.value.code == 143
    assert capsys.readouterr().err.startswith("headwater: job numbers ended before it was started (SIGTERM); ")


def test_an_interrupted_collect_leaves_nothing_running() -> None:
    def interrupt(n: int) -> int:
        if n == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return n

    env = hw.Environment("collected", engine="local", max_rows_per_epoch=1)
    before = threading.active_count()
    numbers = env.from_rows([(n,) for n in range(10_000)], "n long")
    with pytest.raises(KeyboardInterrupt):
        numbers.map(lambda row: (interrupt(row.n),), "n long").collect()
    assert threading.active_count() == before
