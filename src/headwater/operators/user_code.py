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
    name, value, reason = "its function", function, error
    before, seen = "self.", {id(function)}
    while (found := _uncopied(value, before, copied)) is not None and id(found[1]) not in seen:
        name, value, reason = found
        before = f"{name}."
        seen.add(id(value))
    return GraphError.not_shippable(step, name, _kind(value), str(reason), opens=hasattr(function, "open"))


def _uncopied(thing: Any, before: str, copied: Callable[[Any], Any]) -> tuple[str, Any, Exception] | None:
    """What a function uses, or an object has, that cannot be copied: its name, itself, and why."""
    if inspect.isfunction(thing):
        used = inspect.getclosurevars(thing)
        held = {**used.globals, **used.nonlocals}
    else:
        held = {f"{before}{name}": value for name, value in getattr(thing, "__dict__", {}).items()}
    for name, value in held.items():
        try:
            copied(value)
        except Exception as reason:
            return name, value, reason
    return None


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
