"""Cases run on Headwater's harness."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import join_program
import ttl_program
import window_program

PROGRAMS: dict[str, ModuleType] = {
    "windows": window_program,
    **dict.fromkeys(("interval", "window_join", "cogroup", "regular", "temporal"), join_program),
    "ttl": ttl_program,
}


def ways(case: dict[str, Any]) -> tuple[str, ...]:
    """The ways to run a case; each is another path through the operators."""
    return PROGRAMS[case["kind"]].ways(case)


def seen(case: dict[str, Any], way: str, flink: dict[str, Any]) -> dict[str, Any]:
    """What Flink emitted, as that way of running the case can tell it."""
    return PROGRAMS[case["kind"]].seen(case, way, flink)


def run_headwater(case: dict[str, Any], way: str) -> dict[str, Any]:
    """What a case emits on Headwater, in the form that cases.py describes."""
    return PROGRAMS[case["kind"]].run_headwater(case, way)
