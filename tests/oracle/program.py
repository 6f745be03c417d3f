"""Cases run on Headwater's harness."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import window_program

PROGRAMS: dict[str, ModuleType] = {"windows": window_program}


def ways(case: dict[str, Any]) -> tuple[str, ...]:
    """The ways to run a case; each is another path through the operators."""
    return PROGRAMS[case["kind"]].ways(case)


def run_headwater(case: dict[str, Any], way: str) -> dict[str, Any]:
    """What a case emits on Headwater, in the form that cases.py describes."""
    return PROGRAMS[case["kind"]].run_headwater(case, way)
