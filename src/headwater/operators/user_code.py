"""The one place where an exception of user code becomes an error that names step, key and time.

All that user code raises fails the job alike, `SystemExit` and `KeyboardInterrupt` too: none of it may end a task or a
thread as if its work were done.
"""

from __future__ import annotations

import copy
import inspect
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeVar

from headwater.errors import GraphError, UserCodeError

_HEADWATER = str(Path(__file__).parents[1])
Function = TypeVar("Function")


class Opens(Protocol):
    """A function that may prepare itself."""

    def open(self) -> None: ...


def open_function(function: Opens, step: str) -> None:
    """Call a function's `open`."""
    try:
        function.open()
    except BaseException as error:
        raise user_code_failed(error, step) from None


def own_copy(function: Function, step: str) -> Function:
    """A copy of a function, for one place of a step alone."""
    try:
        return copy.deepcopy(function)
    except Exception as error:
        raise not_copied(function, step, error, copy.deepcopy) from None


def not_copied(function: Any, step: str, error: Exception, copied: Callable[[Any], Any]) -> GraphError:
    """The error to raise where a function cannot be copied: it names what of it cannot, as far as that can be found."""
    if inspect.isfunction(function):
        used = inspect.getclosurevars(function)
        parts = {**used.globals, **used.nonlocals}
    else:
        parts = {f"self.{name}": value for name, value in getattr(function, "__dict__", {}).items()}
    for name, value in parts.items():
        try:
            copied(value)
        except Exception as reason:
            return GraphError.not_shippable(step, name, _kind(value), str(reason))
    return GraphError.not_shippable(step, "its function", _kind(function), str(error))


def _kind(value: object) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}"


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
