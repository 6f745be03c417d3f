"""A bound expression: its type and its text in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from headwater.data.functions.types import Type


@dataclass(frozen=True)
class Term:
    """An expression of known type. Its text can stand inside of any other without parentheses around it."""

    type: Type
    sql: str
    literal: str | int | Decimal | float | bool | None = None
    is_literal: bool = False

    @property
    def text(self) -> str:
        """The value of a literal string."""
        assert isinstance(self.literal, str)
        return self.literal


@dataclass(frozen=True)
class Call:
    """The arguments of a call, cast to what its form takes, and the type that it gives."""

    terms: tuple[Term, ...]
    type: Type

    def __getitem__(self, at: int) -> str:
        """The text of an argument."""
        return self.terms[at].sql

    def __len__(self) -> int:
        return len(self.terms)

    @property
    def texts(self) -> list[str]:
        """The texts of all arguments."""
        return [term.sql for term in self.terms]


def let(name: str, value: str, body: str) -> str:
    """The text of `body`, in which a name stands for a value that is computed once."""
    return f"list_transform([{value}], lambda {name}: {body})[1]"
