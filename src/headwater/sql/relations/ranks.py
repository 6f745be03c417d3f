"""Relations that choose rows by their place in an order: Top-N, LIMIT, deduplication."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headwater.data.functions.types import BIGINT
from headwater.sql.relations.core import Field, OfSameColumns, Order, Relation, Window


@dataclass(frozen=True)
class Numbered(OfSameColumns):
    """Each row with its place in its partition. It is known for a part of the rows only: a condition on it must follow."""

    partition: tuple[str, ...] = ()
    order: tuple[Order, ...] = ()
    number: str = ""

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, Field(self.number, BIGINT, is_nullable=False))

    @property
    def label(self) -> str:
        return "ROW_NUMBER()"


@dataclass(frozen=True)
class Rank(Relation):
    """Of each partition the rows that come first in an order: Top-N, and LIMIT."""

    input: Relation
    partition: tuple[str, ...]
    order: tuple[Order, ...]
    first: int
    last: int
    number: str | None
    """The column with a row's place, if it is shown."""
    windowed: Window | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        fields = self.input.fields
        if self.windowed is None:
            why = "a Top-N changes its rows"
            fields = tuple(replace(field, time=None, lost=why) if field.time else field for field in fields)
        return fields if self.number is None else (*fields, Field(self.number, BIGINT, is_nullable=False))

    @property
    def updates(self) -> bool:
        return self.windowed is None

    @property
    def updater(self) -> Relation:
        return self

    @property
    def row_time(self) -> str | None:
        return None if self.windowed is None else self.input.row_time

    @property
    def window(self) -> Window | None:
        return self.windowed

    @property
    def key(self) -> tuple[str, ...] | None:
        if self.number is not None:
            return (*self.partition, self.number)
        if self.first == self.last == 1:
            return self.partition or None
        return self.input.key

    @property
    def label(self) -> str:
        return f"Top-{self.last}"


@dataclass(frozen=True)
class Deduplicate(Relation):
    """The first or the last row of each key, by time."""

    input: Relation
    keys: tuple[str, ...]
    time: str
    domain: str
    is_last: bool
    windowed: Window | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        if not self.updates:
            return self.input.fields
        why = "the last row of a key changes"
        return tuple(replace(f, time=None, lost=why) if f.time else f for f in self.input.fields)

    @property
    def updates(self) -> bool:
        return self.windowed is None and (self.is_last or self.input.updates)

    @property
    def updater(self) -> Relation:
        return self

    @property
    def row_time(self) -> str | None:
        return None if self.updates else self.input.row_time

    @property
    def window(self) -> Window | None:
        return self.windowed

    @property
    def key(self) -> tuple[str, ...]:
        return self.keys

    @property
    def label(self) -> str:
        return f"deduplication by {', '.join(self.keys)}"
