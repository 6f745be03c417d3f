"""Tables outside the job that a lookup join asks for rows by key: what such a table must be able to do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

from headwater.data.schema import Schema


class LookupTable(ABC):
    """The right side of a lookup join, as it is at the moment it is asked. Pickled to the workers."""

    schema: Schema

    @abstractmethod
    def describe(self) -> str:
        """What this is, in a few words, without secrets."""

    @abstractmethod
    def open(self, step: str, keys: Sequence[str], columns: Sequence[str]) -> Lookup:
        """A way to ask for these columns by these key columns, for one place in which the step runs."""


class Lookup(ABC):
    """A table at hand in one place. It connects when it is asked, and again when it is asked after a failure."""

    @abstractmethod
    def find(self, keys: Sequence[Any]) -> list[Sequence[Any]]:
        """For each key, the rows that have it, in an order that depends on the rows alone.

        A key is a value, or a tuple where there are several key columns; none of its values is None, and no key comes twice.
        """

    @abstractmethod
    def load(self) -> Iterator[list[Any]]:
        """All rows in pieces, each row the keys and then the other columns, in an order that depends on the rows alone."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connection, if there is one."""
