"""Functions in Python that queries can call: their types, from annotations or as they are given."""

from __future__ import annotations

import datetime as dt
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headwater.aggregates.called import has
from headwater.data.functions import AGGREGATES, function_named
from headwater.data.functions.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, STRING, TIMESTAMP_LTZ, Type, type_of
from headwater.data.schema import parse_type
from headwater.functions import AggregateFunction
from headwater.sql.errors import SqlError

_BY_ANNOTATION: Final[dict[Any, Type]] = {
    int: BIGINT,
    float: DOUBLE,
    str: STRING,
    bool: BOOLEAN,
    bytes: BINARY,
    dt.date: DATE,
    dt.datetime: TIMESTAMP_LTZ,
}
_ADD_ACCUMULATOR: Final = "add accumulator='bigint'"


@dataclass(frozen=True)
class Function:
    """A function of the user's. What it gives depends on what it gets, and on nothing else."""

    name: str
    call: Callable[..., Any]
    arguments: tuple[Type, ...]
    result: Type
    takes_arrow: bool = False


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate function of the user's."""

    name: str
    call: AggregateFunction[Any, Any, Any]
    arguments: tuple[Type, ...]
    result: Type
    accumulator: Type


def declared_aggregate(
    name: Any,
    call: AggregateFunction[Any, Any, Any],
    arguments: Sequence[str] | None,
    returns: str | None,
    accumulator: str | None,
) -> AggregateCall:
    """An aggregate with the types that are given, or that the annotations of its methods say."""
    step = _checked_name(name)
    for method in ("create", "add", "merge", "result"):
        if not has(call, method):
            raise SqlError.bad_argument(step, f"needs a method {method!r}", type(call).__name__, "write it")
    added, given, kept = _hints(call.add), _hints(call.result), _hints(call.create)
    names = _parameters(call.add, step)[1:] if arguments is None else ()
    takes = [_type(text) for text in arguments] if arguments is not None else [_hinted(added, p, step) for p in names]
    result = _type(returns) if returns is not None else _hinted(given, "return", step)
    held = _type(accumulator) if accumulator is not None else _hinted(kept, "return", step, way=_ADD_ACCUMULATOR)
    return AggregateCall(name.upper(), call, tuple(takes), result, held)


def _checked_name(name: Any) -> str:
    """What errors call a function of a name, which must be one."""
    step = f"function {name!r}"
    if not isinstance(name, str) or not name.isidentifier():
        raise SqlError.bad_argument("create_function", "needs a name of letters, digits and _", name, "choose another")
    if function_named(name.upper()) is not None or name.upper() in AGGREGATES:
        raise SqlError.bad_argument(step, "has the name of a built-in function", name, "choose another")
    return step


def declared_function(
    name: Any, call: Any, arguments: Sequence[str] | None, returns: str | None, *, takes_arrow: bool
) -> Function:
    """A function with the types that are given, or that its annotations say."""
    step = _checked_name(name)
    if not callable(call):
        raise SqlError.bad_argument(step, "needs a function", call, "pass a function or lambda")
    hints = {} if takes_arrow else _hints(call)
    names = _parameters(call, step) if arguments is None else ()
    given = [_type(text) for text in arguments] if arguments is not None else [_hinted(hints, p, step) for p in names]
    result = _type(returns) if returns is not None else _hinted(hints, "return", step)
    return Function(name.upper(), call, tuple(given), result, takes_arrow)


def _type(text: str) -> Type:
    return type_of(parse_type(text))


def _hints(call: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(call)
    except (TypeError, NameError):
        return {}


def _parameters(call: Any, step: str) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(call).parameters)
    except (TypeError, ValueError):
        raise SqlError.bad_argument(step, "does not say what it takes", call, "add arguments=['string', …]") from None


def _hinted(hints: dict[str, Any], name: str, step: str, way: str | None = None) -> Type:
    hint = hints.get(name)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        (hint, *others) = [part for part in typing.get_args(hint) if part is not type(None)]
        hint = None if others else hint
    if hint not in _BY_ANNOTATION:
        what = "the type of its result" if name == "return" else f"the type of {name!r}"
        if way is not None:
            what = "the type of its accumulator"
        else:
            way = "add returns='bigint'" if name == "return" else "add arguments=['string', …]"
        raise SqlError.bad_argument(step, f"does not say {what}", hint, f"annotate it, or {way}")
    return _BY_ANNOTATION[hint]
