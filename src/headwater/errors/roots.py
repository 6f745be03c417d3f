"""What all errors of ours are, and how a value is shown in them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class HeadwaterError(Exception):
    """The root of all errors raised by Headwater."""

    is_final = False
    """Whether a job that fails with it would fail again however often it is started in this process."""
    is_transient = False
    """Whether it may pass by itself in a moment; a task that fails with any other is not tried again."""


def short(value: object, limit: int = 200) -> str:
    """A value as errors show it."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def nearest(name: str, known: Iterable[str]) -> str:
    """The names that one may have meant, to be added to a sentence; nothing where none is near."""
    lower = {other.lower(): other for other in known}
    close = [lower[word] for word in difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)]
    return f"; the nearest are {', '.join(close)}" if close else ""
