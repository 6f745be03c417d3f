"""The verdict on what users wrote, and what is asked of sources and sinks alike."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

from headwater.connectors.contract import Sink, Source

Shipped = TypeVar("Shipped")


class NotConforming(AssertionError):
    """A connector, trigger or window assigner that breaks its contract: which rule, and what it did instead."""

    rule = ""
    """The rule that was broken."""

    @classmethod
    def of(cls, subject: object, rule: str, found: object) -> NotConforming:
        error = cls(f"{type(subject).__name__}: {rule}; {found}")
        error.rule = rule
        return error


def require(subject: object, rule: str, found: object, *, holds: bool) -> None:
    """Refuse what a rule does not hold for."""
    if not holds:
        raise NotConforming.of(subject, rule, found)


def check_words(connector: Source | Sink, secrets: Sequence[str]) -> None:
    """The connector says what it is, and nothing that is nobody's business."""
    words = connector.describe()
    require(connector, "describe() says in a few words what it is", f"it gave {words!r}", holds=bool(words))
    for shown, where in ((words, "describe()"), (repr(connector), "repr()")):
        told = [number for number, secret in enumerate(secrets) if secret in shown]
        require(connector, f"{where} shows no secret", f"secret number {told} is in it", holds=not told)


def as_shipped(subject: Shipped) -> Shipped:
    """What another process gets: what `__getstate__` leaves out is not there."""
    try:
        return copy.deepcopy(subject)
    except TypeError as error:
        rule = "it travels to other processes; leave open handles out in __getstate__"
        raise NotConforming.of(subject, rule, error) from error
