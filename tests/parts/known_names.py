"""Names in code that is not run: whether what it asks of `hw`, and of what that gives, is there.

It follows calls by what functions say that they return, as far as that goes; of what is not known nothing is said.
"""

from __future__ import annotations

import ast
import inspect
import pkgutil
import re
import sys
from importlib import import_module
from typing import Any

import headwater as hw

for public in hw.__all__:
    getattr(hw, public)  # names are imported when they are first used
for room in pkgutil.walk_packages(hw.connectors.__path__, "headwater.connectors."):
    import_module(room.name)  # and so are connectors

_CLASSES = {
    thing.__name__: thing
    for name, module in sorted(sys.modules.items())
    if name.startswith("headwater")
    for thing in vars(module).values()
    if inspect.isclass(thing) and thing.__module__.startswith("headwater")
}
"""All classes of the package by name: annotations are text."""


class Instance:
    """An instance of a class, of which no more is known."""

    def __init__(self, cls: type) -> None:
        self.cls = cls


class Reader:
    """Goes through code in its order and notes what does not exist."""

    def __init__(self) -> None:
        self.known: dict[str, Any] = {"hw": hw}
        self.missing: list[str] = []

    def read(self, code: str) -> list[str]:
        for statement in ast.parse(code).body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Store):
                    self.value(node)
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                self.known[statement.targets[0].id] = self.value(statement.value)
        return list(dict.fromkeys(self.missing))

    def value(self, node: ast.AST) -> Any:
        """What an expression gives: a thing of `hw`, an instance, or None where that is not known."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            return self._attribute(self.value(node.value), node.attr, ast.unparse(node))
        return _given_by(self.value(node.func)) if isinstance(node, ast.Call) else None

    def _attribute(self, of: Any, name: str, shown: str) -> Any:
        if of is None:
            return None
        owner = of.cls if isinstance(of, Instance) else of
        if isinstance(of, Instance) and name in _own_attributes(owner):
            return None
        if name.startswith("_") or not _has(owner, name):
            self.missing.append(shown)
            return None
        return inspect.getattr_static(owner, name) if isinstance(of, Instance) else getattr(owner, name)


def _has(owner: Any, name: str) -> bool:
    return name in dir(owner)


def _own_attributes(cls: type) -> set[str]:
    """What instances have that their class has not: fields, and what methods set."""
    found: set[str] = set()
    for one in cls.__mro__:
        if one.__module__.startswith("headwater"):
            found |= {*getattr(one, "__annotations__", ()), *re.findall(r"self\.(\w+)", inspect.getsource(one))}
    return found - {name for name in dir(cls) if callable(getattr(cls, name, None))}


def _given_by(called: Any) -> Any:
    if inspect.isclass(called):
        return Instance(called) if called.__module__.startswith("headwater") else None
    called = called.__func__ if isinstance(called, classmethod | staticmethod) else called
    said = getattr(called, "__annotations__", {}).get("return")
    cls = _CLASSES.get(said) if isinstance(said, str) else None
    return None if cls is None else Instance(cls)
