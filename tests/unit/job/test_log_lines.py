"""The log as JSON: an object a line, with the job, epoch and step that it is about."""

from __future__ import annotations

import json
import logging
import sys

import pytest

import headwater as hw
from headwater.job.log_lines import JsonLines


def test_error_with_its_traceback_stays_on_one_line():
    try:
        raise ValueError("bad\nworse")
    except ValueError:
        record = logging.LogRecord("headwater.x", logging.ERROR, "f", 1, "it %s", ("broke\nhere",), sys.exc_info())
    line = JsonLines().format(record)
    assert "\n" not in line
    assert json.loads(line)["message"] == "it broke\nhere"
    assert "ValueError: bad\nworse" in json.loads(line)["error"]


def test_format_that_there_is_not_is_refused():
    with pytest.raises(hw.GraphError, match="logs as text or json"):
        hw.Environment("x", log_format="xml")
