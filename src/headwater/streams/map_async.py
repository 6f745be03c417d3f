"""What `map_async` is given, checked before the step is made."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from headwater.data.schema import Schema
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import OutputTag
from headwater.retry import Retry
from headwater.streams.failed_rows import failed_settings


def async_settings(
    step: str,
    function: Callable[[Any], Awaitable[Any]],
    rows: Schema,
    *,
    capacity: int,
    timeout: Duration | None,
    retry: Retry | None,
    timeout_to: OutputTag | None,
    failed_to: OutputTag | None,
) -> dict[str, Any]:
    """The settings of a `MapAsyncNode` over a stream of these rows."""
    _check_function(step, function)
    if type(capacity) is not int or capacity < 1:
        raise GraphError.bad_argument(step, "has a capacity of 1 call or more", capacity, "100 is a good number")
    timeout_ms = None if timeout is None else duration_ms(timeout, what=f"the timeout of step {step!r}")
    if timeout_ms == 0:
        raise GraphError.bad_argument(step, "needs a timeout of more than nothing", timeout, "leave it out to wait")
    if retry is not None and not isinstance(retry, Retry):
        raise GraphError.bad_argument(step, "needs a hw.Retry", retry, "write retry=hw.Retry(attempts=3)")
    if timeout_to is not None:
        _check_tag(step, timeout_to, rows, timeout_ms)
    failed = failed_settings(step, failed_to, rows)
    timed_out = {} if timeout_to is None else {timeout_to.name: timeout_to.schema}
    if timed_out.keys() & failed.get("outputs", {}).keys():
        raise GraphError.bad_argument(
            step, "needs different names for timeout_to and failed_to", timeout_to, "rename one"
        )
    return {
        "function": function,
        "capacity": capacity,
        "timeout_ms": timeout_ms,
        "retry": retry,
        "timeout_to": timeout_to,
        **failed,
        "outputs": {**timed_out, **failed.get("outputs", {})},
    }


def _check_function(step: str, function: Any) -> None:
    if not inspect.iscoroutinefunction(function) and not _is_async(type(function), "__call__"):
        raise GraphError.bad_argument(
            step,
            "needs a coroutine function, or an object with one as __call__",
            function,
            "write async def, or use map for an ordinary function",
        )
    for name in ("open", "close"):
        if hasattr(function, name) and not _is_async(function, name):
            raise GraphError.bad_argument(
                step, f"awaits its function's {name}, which must be a coroutine function", function, "write async def"
            )


def _is_async(owner: Any, name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(owner, name, None))


def _check_tag(step: str, tag: OutputTag, rows: Schema, timeout_ms: int | None) -> None:
    if not isinstance(tag, OutputTag):
        raise GraphError.bad_argument(step, "sends rows that time out to a hw.OutputTag", tag, "make one for it")
    if timeout_ms is None:
        raise GraphError.bad_argument(
            step, "has timeout_to but no timeout", tag.name, "add timeout='5 s', or leave it out"
        )
    if tag.schema != rows:
        raise GraphError.bad_argument(
            step, f"sends its input to timeout_to, which is '{rows}'", str(tag.schema), "give the tag that schema"
        )
