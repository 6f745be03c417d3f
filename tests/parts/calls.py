"""How often Headwater calls functions: those in Python, and those in C that its Python calls."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_in(run: Callable[[], Any]) -> int:
    """The calls that a run makes, in all the threads that it starts, by the package and by what is called from it."""
    count = 0

    def profile(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        if event in ("call", "c_call") and "/headwater/" in frame.f_code.co_filename:
            count += 1

    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return count


def growth(runs: Callable[[int], Callable[[], Any]], few: int, many: int) -> float:
    """How many calls more a row costs, of runs over few rows and over many; what is done once in a process is done before."""
    runs(few)()
    return (calls_in(runs(many)) - calls_in(runs(few))) / (many - few)
