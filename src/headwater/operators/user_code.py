"""The one place where an exception of user code becomes an error that names step, key and time."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from headwater.errors import UserCodeError

_HEADWATER = str(Path(__file__).parents[1])


class Opens(Protocol):
    """A function that may prepare itself."""

    def open(self) -> None: ...


def open_function(function: Opens, step: str) -> None:
    """Call a function's `open`."""
    try:
        function.open()
    except Exception as error:
        raise user_code_failed(error, step) from None


def user_code_failed(error: BaseException, step: str, key: Any = None, timestamp: int | None = None) -> UserCodeError:
    """The error to raise in place of `error`; the frames of Headwater itself above the user's are left out."""
    if isinstance(error, UserCodeError):  # of a function that user code was given to call
        return error
    text = "".join(traceback.format_exception(type(error), error, _from_user(error.__traceback__)))
    cause = traceback.format_exception_only(error)[-1].strip()
    return UserCodeError(step, key, timestamp, cause, text)


def _from_user(frames: TracebackType | None) -> TracebackType | None:
    """The frames from the first one outside Headwater on; all but the first where there is none outside."""
    at = frames
    while at is not None and at.tb_frame.f_code.co_filename.startswith(_HEADWATER):
        at = at.tb_next
    return at or (frames and frames.tb_next) or frames
