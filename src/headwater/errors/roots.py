"""What all errors of ours are, and how a value is shown in them."""

from __future__ import annotations


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
