"""What a job tells through `logging`, and what of it is shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.epoch.steps import EpochStep, ignore_steps
from headwater.job.engine import Settings
from headwater.job.logbook import Logbook
from headwater.streams.logs import show_log


def _env(**settings: Any) -> hw.Environment:
    env = hw.Environment("talk", engine="local", **settings)
    env.from_rows([(1,), (2,)], "n long").map(lambda row: row).sink(hw.connectors.memory())
    return env


def _told(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "headwater.job"]


def test_a_run_is_told_from_its_start_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "headwater")
    _env().run()
    assert _told(caplog) == [
        ("INFO", "job 'talk' starts on local in a temporary folder, from the beginning"),
        ("INFO", "job 'talk' has finished: 1 epochs and 2 rows in this run"),
    ]


def test_a_restart_is_a_warning_and_a_failure_is_raised_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", "headwater")
    env = hw.Environment("talk", engine="local", restart=hw.restart.fixed(1, delay="1 ms"))
    env.from_rows([(1,)], "n long").map(lambda row: 1 / 0, "n long").with_uid("bad").sink(hw.connectors.memory())
    with pytest.raises(hw.UserCodeError):
        env.run()
    [(level, text)] = _told(caplog)
    assert level == "WARNING"
    assert text.startswith("job 'talk' failed and starts again in 1 ms (restart 1): UserCodeError: step 'bad' failed")
    assert "\n" not in text


def test_a_savepoint_is_told(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level("INFO", "headwater")
    _env().run().savepoint(tmp_path / "saved")
    assert f"job 'talk' saved epoch 0 in {tmp_path / 'saved'}: " in _told(caplog)[-1][1]


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def _epoch(step: Any, clock: Clock, epoch: int, **seconds: float) -> None:
    for name in ("PLANNED", "STAGED", "MANIFEST", "COMMITTED", "PUBLISHING", "PUBLISHED", "CLEANED"):
        clock.now_s += seconds.get(name, 0.0)
        step(EpochStep[name], epoch)


def test_slow_epochs_are_told_now_and_then_with_what_took_longest(caplog: pytest.LogCaptureFixture) -> None:
    clock, plan = Clock(), _env().plan()
    settings = Settings(None, 1000, checkpoints_retained=2, max_rows_per_epoch=1, bounded=False)
    step = Logbook(plan, settings, now_s=clock).watching(ignore_steps)
    _epoch(step, clock, 0, STAGED=9.0)
    _epoch(step, clock, 1, STAGED=12.0, PUBLISHED=2.0)
    _epoch(step, clock, 2, PUBLISHING=30.0)
    _epoch(step, clock, 3, PLANNED=60.0, PUBLISHING=30.0)
    assert _told(caplog) == [
        ("WARNING", "job 'talk': epoch 1 took 14.0 s, 12.0 s of it to compute; the checkpoint interval is 1.0 s"),
        ("WARNING", "job 'talk': epoch 3 took 30.0 s, 30.0 s of it to publish; the checkpoint interval is 1.0 s"),
    ]


@contextmanager
def unconfigured() -> Iterator[None]:
    """Logging as it is in a program that has not set it up; pytest sets it up for each test."""
    root, ours = logging.getLogger(), logging.getLogger("headwater")
    before = root.handlers[:], ours.handlers[:], ours.level
    root.handlers[:], ours.handlers[:] = [], []
    ours.setLevel(logging.NOTSET)
    try:
        yield
    finally:
        root.handlers[:], ours.handlers[:] = before[0], before[1]
        ours.setLevel(before[2])


@unconfigured()
def test_warnings_are_shown_unless_said_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    _env().run()
    assert capsys.readouterr().err == ""
    _env(log_level="info").run()
    assert "INFO headwater.job: job 'talk' has finished" in capsys.readouterr().err
    _env().run()
    assert "has finished" in capsys.readouterr().err, "what was said stays"


@unconfigured()
def test_an_application_that_sets_logging_up_is_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    root, ours = logging.getLogger(), logging.getLogger("headwater")
    own = logging.NullHandler()
    root.addHandler(own)
    level = root.level
    show_log(None)
    assert (root.handlers, root.level, ours.handlers, ours.level) == ([own], level, [], logging.NOTSET)
    show_log("debug")
    assert (root.handlers, root.level, ours.handlers, ours.level) == ([own], level, [], logging.DEBUG)
    root.removeHandler(own)
    show_log("debug")
    root.addHandler(own)  # after the fact
    logging.getLogger("headwater.job").warning("twice?")
    assert capsys.readouterr().err == ""


@unconfigured()
def test_lines_of_a_job_are_objects_that_say_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    failed: list[Any] = []

    def fail(row: Any) -> Any:
        if not failed:
            failed.append(row)
            raise ValueError("first\nsecond")
        return row

    restart = hw.restart.fixed(1, delay="0 s")
    env = hw.Environment("lines", engine="local", log_level="debug", log_format="json", restart=restart)
    env.from_rows([(1,)], "n long").map(fail, "n long").with_uid("once").sink(hw.connectors.memory())
    env.run()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["level"] for line in lines] == ["info", "warning", "info", "debug", "info"]
    assert {line["job"] for line in lines} == {"lines"}
    assert [line.get("step") for line in lines] == [None, "once", None, None, None]
    assert [line.get("epoch") for line in lines] == [None, None, None, 0, 0]
    assert lines[1]["message"].startswith("job 'lines' failed and starts again")
    assert {*lines[0]} == {"time", "level", "logger", "message", "job"}


def test_another_level_is_refused() -> None:
    with pytest.raises(hw.GraphError, match="logs at debug, info, warning, error; got 'loud'"):
        _env(log_level="loud")
