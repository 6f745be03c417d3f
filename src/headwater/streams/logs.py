"""What is shown of the library's log, where the application has not set up logging itself."""

from __future__ import annotations

import logging
import sys
from typing import get_args

from headwater.errors import GraphError
from headwater.job.log_lines import line_format
from headwater.words import LogFormat, LogLevel

_LOG = logging.getLogger("headwater")


class _Shown(logging.Handler):
    """Writes to standard error, whichever it is, until the application has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers or sys.stderr is None:
            return
        try:
            sys.stderr.write(f"{self.format(record)}\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


def check_log(level: object, log_format: object) -> None:
    """Refuse a level and a format that there is not."""
    if log_format not in get_args(LogFormat):
        raise GraphError.bad_argument(
            "environment", f"logs as {' or '.join(get_args(LogFormat))}", log_format, "choose one of them"
        )
    if level is not None and level not in get_args(LogLevel):
        known = ", ".join(get_args(LogLevel))
        raise GraphError.bad_argument("environment", f"logs at {known}", level, "choose one of them")


def show_log(level: LogLevel | None, log_format: LogFormat = "text") -> None:
    """Show what is logged at a level and above; without one, warnings, unless the application has said otherwise.

    The root logger is left alone. Where it or ours has handlers, they decide what becomes of what is logged.
    """
    if not _LOG.handlers and not logging.getLogger().handlers:
        _LOG.addHandler(_Shown())
    for handler in _LOG.handlers:
        if isinstance(handler, _Shown):
            handler.setFormatter(line_format(log_format))
    if level is not None:
        _LOG.setLevel(level.upper())
