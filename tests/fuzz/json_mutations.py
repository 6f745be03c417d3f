"""Damage to JSON: values of other types, huge numbers, deep nesting, names that lead elsewhere, parts that changed places."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

DEEP = 100_000
"""Levels of nesting; Python's own reader gives up long before."""
_DEEP_MARK = "deep nesting goes here"
_OUTSIDE = (
    "../outside",
    "../../outside",
    "/tmp/outside",
    "//tmp/outside",
    "sources/x//tmp/outside",
    "a/../../outside",
    "..",
    ".",
    "",
    "a\0b",
    "link/outside",
    "x" * 300,
    "\ud800",
)
"""Names of files that are not the artefact's own."""
_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    -(2**63),
    2**200,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "0",
    "1",
    [],
    [None],
    [[]],
    {},
    {"x": 1},
    {"": {}},
    *_OUTSIDE,
    _DEEP_MARK,
)
Path = tuple[Any, ...]


def mutated_json(random: Random, document: Any, others: Sequence[Any] = ()) -> str:
    """The text of a document with one or two faults, perhaps with a part of another one of the kind."""
    while True:
        found = copy.deepcopy(document)
        for _ in range(random.choice((1, 1, 1, 2))):
            found = random.choice(_FAULTS)(random, found, others)
        if not _same(found, document):
            break
    opening = random.choice(("[", '{"x":'))
    deep = opening * DEEP + "1" + ("]" if opening == "[" else "}") * DEEP
    return json.dumps(found).replace(json.dumps(_DEEP_MARK), deep)


def _same(one: Any, other: Any) -> bool:
    """Whether two documents are alike in their types too."""
    return json.dumps(one) == json.dumps(other)


def _paths(node: Any, path: Path = ()) -> list[Path]:
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path, *(inner for key, value in members for inner in _paths(value, (*path, key)))]


def _at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def _with(document: Any, path: Path, value: Any) -> Any:
    if not path:
        return value
    _at(document, path[:-1])[path[-1]] = value
    return document


def _replace(random: Random, document: Any, others: Sequence[Any]) -> Any:
    return _with(document, random.choice(_paths(document)), copy.deepcopy(random.choice(_VALUES)))


def _nudge(random: Random, document: Any, others: Sequence[Any]) -> Any:
    """A number or a text that is a little different: it fits everywhere, and is wrong."""
    path = random.choice(_paths(document))
    value = _at(document, path)
    if isinstance(value, bool):
        return _with(document, path, not value)
    if isinstance(value, int):
        return _with(document, path, value + random.choice((-1, 1, 10, -10)))
    if isinstance(value, str):
        return _with(document, path, random.choice((value[:-1], value + "x", value.upper(), value[::-1])))
    return document


def _lose(random: Random, document: Any, others: Sequence[Any]) -> Any:
    path = random.choice(_paths(document))
    if path:
        del _at(document, path[:-1])[path[-1]]
    return document


def _rename(random: Random, document: Any, others: Sequence[Any]) -> Any:
    path = random.choice(_paths(document))
    if path and isinstance(path[-1], str):
        holder = _at(document, path[:-1])
        holder[random.choice((path[-1] + "x", path[-1][:-1], "", *_OUTSIDE))] = holder.pop(path[-1])
    return document


def _swap(random: Random, document: Any, others: Sequence[Any]) -> Any:
    """Two parts change places, of which neither holds the other."""
    one, two = random.choice(_paths(document)), random.choice(_paths(document))
    if one[: len(two)] == two or two[: len(one)] == one:
        return document
    first, second = _at(document, one), _at(document, two)
    return _with(_with(document, one, second), two, first)


def _double(random: Random, document: Any, others: Sequence[Any]) -> Any:
    path = random.choice(_paths(document))
    value = _at(document, path)
    if isinstance(value, list) and value:
        value.insert(random.randint(0, len(value)), copy.deepcopy(random.choice(value)))
    elif isinstance(value, dict) and value:
        value["again"] = copy.deepcopy(random.choice(list(value.values())))
    return document


def _splice(random: Random, document: Any, others: Sequence[Any]) -> Any:
    if not others:
        return document
    other = random.choice(others)
    return _with(document, random.choice(_paths(document)), copy.deepcopy(_at(other, random.choice(_paths(other)))))


def _nest(random: Random, document: Any, others: Sequence[Any]) -> Any:
    path = random.choice(_paths(document))
    value = _at(document, path)
    return _with(document, path, random.choice(([value], {"x": value})))


_FAULTS: tuple[Callable[[Random, Any, Sequence[Any]], Any], ...] = (
    _replace,
    _replace,
    _replace,
    _nudge,
    _nudge,
    _lose,
    _rename,
    _swap,
    _double,
    _splice,
    _nest,
)
