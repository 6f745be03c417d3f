from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

import headwater as hw


def job(*sinks: hw.connectors.Sink, **settings: Any) -> hw.Environment:
    env = hw.Environment("job", engine="local", **settings)
    stream = env.from_rows([(1,)], "n long")
    for number, sink in enumerate(sinks):
        stream.sink(sink, name=f"out{number}")
    return env


def console() -> hw.connectors.Sink:
    return hw.connectors.console(io.StringIO())


def test_a_job_that_goes_on_after_a_failure_warns_of_what_is_not_once() -> None:
    env = job(console(), hw.connectors.memory(), console(), restart=hw.restart.fixed(1))
    with pytest.warns(hw.GuaranteeWarning) as caught:
        started = env.start()
    started.wait()
    (warning,) = caught
    assert str(warning.message) == (
        "job 'job' is not exactly-once on all paths: rows -> out0 is at-least-once; rows -> out2 is at-least-once; "
        "env.explain_guarantees() says why; use other connectors, or silence hw.GuaranteeWarning if this will do"
    )
    assert warning.filename == __file__


@pytest.mark.parametrize(
    ("sink", "settings"), [(console(), {}), (hw.connectors.memory(), {"restart": hw.restart.fixed(1)})]
)
def test_a_job_that_has_nothing_to_double_does_not_warn(sink: hw.connectors.Sink, settings: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        job(sink, **settings).run()


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({}, "starts from the beginning: it has neither"),
        ({"job_dir": "job"}, "starts from the beginning: it has neither"),
        ({"restart": hw.restart.fixed(1)}, "last committed epoch; in a new process it starts from the beginning"),
        ({"engine": "spark", "restart": hw.restart.fixed(1)}, "in a new process it starts from the beginning"),
        ({"engine": "spark", "job_dir": "job"}, "last committed epoch, also in a new process"),
    ],
)
def test_the_report_says_what_a_job_goes_on_from(settings: dict[str, Any], line: str) -> None:
    env = hw.Environment("job", **{"engine": "local", **settings})
    env.from_rows([(1,)], "n long").sink(hw.connectors.memory())
    assert line in env.explain_guarantees().splitlines()[1]
