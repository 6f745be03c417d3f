"""Docstrings as the site shows them: examples as blocks of code, and functions that are named as modules beside them."""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension, Function, Module, Object

_EXAMPLE = re.compile(r"(?:^[ ]*>>> .*\n?(?:^[ ]*(?!>>> )\S.*\n?)*)+", re.MULTILINE)


class ShownDocstrings(Extension):
    """Puts examples between fences, where Markdown would see quotations, and keeps `connectors.log` a function."""

    def __init__(self) -> None:
        super().__init__()
        self._functions: list[Function] = []

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Once for each module, class, function and attribute."""
        if obj.docstring is not None:
            text = obj.docstring.value
            obj.docstring.value = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0].rstrip()}\n```\n", text)

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Once for each class: what Python calls by itself is no entry."""
        for name in [name for name in cls.members if name.startswith("__") and name != "__init__"]:
            del cls.members[name]

    def on_function_instance(self, *, func: Function, **_: Any) -> None:
        """Once for each function, as its module is read."""
        self._functions.append(func)

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """When all is read: modules have taken the places of functions of their names."""
        for func in self._functions:
            package = func.parent
            if isinstance(package, Module) and isinstance(package.members.get(func.name), Module):
                package.members[func.name] = func
