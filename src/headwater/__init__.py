"""Headwater: stateful stream processing with Flink's programming model, in Python, on Spark Structured Streaming.

The public names stand in `__init__.pyi`, and are imported when they are first used: Spark starts several Python processes
for each query, which unpickle parts of it, need few of these names, and are up sooner without the rest.
"""

from __future__ import annotations

import ast
import sys
from importlib import import_module
from pathlib import Path

from headwater.uncaught import leave_out_our_frames

__version__ = "0.1.0"

leave_out_our_frames()


def _homes() -> dict[str, tuple[str, str]]:
    """Of each public name the module that has it, and its name there."""
    declared = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    found = {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in declared.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    return dict(sorted(found.items()))


_HOMES = _homes()
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    home, attribute = _HOMES[name]
    if home == __name__:
        return import_module(f"{home}.{attribute}")
    found: object = getattr(__import__(home, fromlist=[attribute]), attribute)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
