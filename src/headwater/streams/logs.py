"""What is shown of the library's log, where the application has not set up logging itself."""

from __future__ import annotations

import logging
import sys
from typing import get_args

from headwater.errors import GraphError
from headwater.words import LogLevel

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


def check_log_level(level: object) -> None:
    """Refuse a level that there is not."""
    if level is not None and level not in get_args(LogLevel):
        known = ", ".join(get_args(LogLevel))
        raise GraphError.bad_argument("environment", f"logs at {known}", level, "choose one of them")


def show_log(level: LogLevel | None) -> None:
    """Show what is logged at a level and above; without one, warnings, unless the application has said otherwise.

    The root logger is left alone. Where it or ours has handlers, they decide what becomes of what is logged.
    """
    if not _LOG.handlers and not logging.getLogger().handlers:
        handler = _Shown()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        _LOG.addHandler(handler)
    if level is not None:
        _LOG.setLevel(level.upper())
