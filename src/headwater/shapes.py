"""Whether values that came out of JSON are what the fields of a record declare: whoever wrote a file chose their types."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
"""Whole numbers are counters, positions and times, which have 64 bits everywhere else."""


def misfit(record: Any) -> str | None:
    """The first field of a record that holds something else than it declares, in words; None when all are as declared."""
    return next(_misfits(record, type(record), "it"), None)


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type, as fields are annotated with it."""
    return next(_misfits(value, hint, "it"), None) is None


def _misfits(value: Any, hint: Any, name: str) -> Iterator[str]:
    if hint is Any:
        return
    of, arguments = get_origin(hint), get_args(hint)
    if of in (types.UnionType, Union):
        if not any(fits(value, one) for one in arguments):
            yield _problem(value, name)
    elif not (value in arguments if of is Literal else _is_one(value, of or hint)):
        yield _problem(value, name)
    elif isinstance(value, Mapping) and of is not None:
        for key, inner in value.items():
            yield from _misfits(key, arguments[0], f"a name in {name}")
            yield from _misfits(inner, arguments[1], f"{name}/{key}")
    elif isinstance(value, list | tuple) and of is not None:
        inside = arguments if of is tuple and arguments[-1] is not Ellipsis else [arguments[0]] * len(value)
        if len(inside) != len(value):
            yield _problem(value, name)
            return
        for at, (inner, expected) in enumerate(zip(value, inside, strict=True)):
            yield from _misfits(inner, expected, f"{name}/{at}")
    elif is_dataclass(value) and not isinstance(value, type):
        hints = _hints(type(value))
        for field in fields(value):
            yield from _misfits(getattr(value, field.name), hints[field.name], f"{name}/{field.name}")


def _is_one(value: Any, kind: Any) -> bool:
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and _LEAST <= value <= _MOST
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is str:
        return isinstance(value, str) and _is_text(value)
    return isinstance(value, list | tuple if kind in (list, tuple, Sequence) else kind)


def _problem(value: Any, name: str) -> str:
    shown = f"{value!r:.100}" if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
    return f"{name} is {shown}"


@cache
def _hints(record: type[Any]) -> dict[str, Any]:
    return get_type_hints(record)


def _is_text(value: str) -> bool:
    """Whether it can be written: JSON can say half of a character."""
    return value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value)
