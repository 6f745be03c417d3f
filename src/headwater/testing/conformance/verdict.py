"""The verdict on a connector, and what is asked of sources and sinks alike."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TypeVar

from headwater.connectors.contract import Sink, Source

Connector = TypeVar("Connector", bound=Source | Sink)


class NotConforming(AssertionError):
    """A connector that breaks its contract: which rule, and what it did instead."""

    @classmethod
    def of(cls, connector: Source | Sink, rule: str, found: object) -> NotConforming:
        return cls(f"{type(connector).__name__}: {rule}; {found}")


def require(connector: Source | Sink, rule: str, found: object, *, holds: bool) -> None:
    """Refuse a connector for which a rule does not hold."""
    if not holds:
        raise NotConforming.of(connector, rule, found)


def check_words(connector: Source | Sink, secrets: Sequence[str]) -> None:
    """The connector says what it is, and nothing that is nobody's business."""
    words = connector.describe()
    require(connector, "describe() says in a few words what it is", f"it gave {words!r}", holds=bool(words))
    for shown, where in ((words, "describe()"), (repr(connector), "repr()")):
        told = [number for number, secret in enumerate(secrets) if secret in shown]
        require(connector, f"{where} shows no secret", f"secret number {told} is in it", holds=not told)


def as_shipped(connector: Connector) -> Connector:
    """The connector as another process gets it: what `__getstate__` leaves out is not there."""
    try:
        return copy.deepcopy(connector)
    except TypeError as error:
        rule = "it travels to other processes; leave open handles out in __getstate__"
        raise NotConforming.of(connector, rule, error) from error
