"""Giving up places and what is held open in them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from headwater.operators.contract import HoldsOpen


def close_all(holders: Iterable[HoldsOpen]) -> None:
    """Close every one, also when one of them fails to; its failure is raised when all are closed."""
    with ExitStack() as closing:
        for holder in reversed(list(holders)):
            closing.callback(holder.close)
