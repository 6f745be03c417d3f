"""Work, counted: what a test compares where it must not compare times."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls_of(run: Callable[[], Any]) -> int:
    """How many functions are called, Python's and others'."""
    count = 0

    def on_call(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_call)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count
