"""The one place where an exception of user code becomes an error that names step, key and time."""

from __future__ import annotations

import traceback
from typing import Any, Protocol

from headwater.errors import UserCodeError


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
    frames = error.__traceback__.tb_next if error.__traceback__ is not None else None
    text = "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))
    cause = traceback.format_exception_only(error)[-1].strip()
    return UserCodeError(step, key, timestamp, cause, text)
