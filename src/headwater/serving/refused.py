"""A request that is not done."""

from __future__ import annotations

from typing import Any

_SHOWN_CHARACTERS = 1_000
"""What is said of a request, which may quote it, however long that is."""


class Refused(Exception):
    """A request that is not done: its status, why, and what else the client must know."""

    def __init__(self, status: int, why: str, **facts: Any) -> None:
        shown = why if len(why) <= _SHOWN_CHARACTERS else f"{why[:_SHOWN_CHARACTERS]}…"
        super().__init__(shown.encode("utf-8", "backslashreplace").decode())
        self.status = status
        self.facts = facts
