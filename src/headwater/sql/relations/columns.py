"""Relations that are computed row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.sql.relations.core import (
    EVENT,
    PROCESSING,
    Field,
    OfSameColumns,
    Relation,
    Scalar,
    Window,
    passed_on,
    window_fields,
)


@dataclass(frozen=True)
class Scan(Relation):
    """A table of the catalog. The table says what it is; here is what a query sees of it."""

    table: Any
    seen: tuple[Field, ...]
    computed: tuple[tuple[str, Scalar], ...] = ()
    """Columns that are computed of those that are stored."""
    time: str | None = None
    primary_key: tuple[str, ...] = ()
    changes: bool = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.seen

    @property
    def updates(self) -> bool:
        return self.changes

    @property
    def row_time(self) -> str | None:
        return self.time

    @property
    def key(self) -> tuple[str, ...] | None:
        return self.primary_key or None

    @property
    def label(self) -> str:
        return f"table {self.table.name}"


@dataclass(frozen=True)
class View(Relation):
    """What a view gives; steps inside are named after it."""

    name: str
    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.input.fields

    @property
    def row_time(self) -> str | None:
        return self.input.row_time

    @property
    def window(self) -> Window | None:
        return self.input.window

    @property
    def key(self) -> tuple[str, ...] | None:
        return self.input.key


@dataclass(frozen=True)
class Values(Relation):
    """Rows that are written in the query."""

    seen: tuple[Field, ...]
    rows: tuple[tuple[Term, ...], ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.seen


@dataclass(frozen=True)
class Project(Relation):
    """Columns that are computed of others."""

    input: Relation
    items: tuple[tuple[str, Scalar], ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @cached_property
    def passed(self) -> dict[str, str]:
        """The new name of each column that is passed on as it is."""
        names: dict[str, str] = {}
        for name, scalar in self.items:
            if scalar.column is not None:
                names.setdefault(scalar.column, name)
        return names

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        known = self.input.by_name
        return tuple(
            replace(known[scalar.column], name=name) if scalar.column is not None else _computed(name, scalar)
            for name, scalar in self.items
        )

    @property
    def row_time(self) -> str | None:
        return self.passed.get(self.input.row_time or "")

    @property
    def window(self) -> Window | None:
        return None if self.input.window is None else self.input.window.renamed(self.passed)

    @property
    def key(self) -> tuple[str, ...] | None:
        key = self.input.key
        if key is None or any(name not in self.passed for name in key):
            return None
        return tuple(self.passed[name] for name in key)

    @property
    def label(self) -> str:
        return "SELECT"


def _computed(name: str, scalar: Scalar) -> Field:
    is_clock = isinstance(scalar.tree, exp.Anonymous) and scalar.tree.this == "PROCTIME"
    return Field(name, scalar.term.type, PROCESSING if is_clock else None)


@dataclass(frozen=True)
class Filter(OfSameColumns):
    """The rows for which a condition is true."""

    condition: Scalar

    @property
    def label(self) -> str:
        return "WHERE"


@dataclass(frozen=True)
class Retimed(OfSameColumns):
    """Rows that travel with the event time of another column, which may be behind the watermark: that waits for them."""

    time: str

    @property
    def fields(self) -> tuple[Field, ...]:
        why = f"event time goes by {self.time}"
        return tuple(
            replace(field, delay=0)
            if field.name == self.time
            else replace(field, time=None, lost=why)
            if field.time == EVENT
            else field
            for field in self.input.fields
        )

    @property
    def row_time(self) -> str | None:
        return self.time

    @property
    def label(self) -> str:
        return "another event time"


def by_time(relation: Relation, column: str) -> Relation:
    """The rows for something that goes by a time attribute."""
    return Retimed(relation, column) if relation.by_name[column].delay else relation


@dataclass(frozen=True)
class WindowTable(Relation):
    """Rows with the windows that they are in; a row is there once for each."""

    input: Relation
    made: Window

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def fields(self) -> tuple[Field, ...]:
        assert self.made.bound is not None
        fields = self.input.fields
        if self.is_session:
            why = "rows of a SESSION come when it is over"
            fields = tuple(replace(field, time=None, lost=why) if field.time else field for field in fields)
        return (*fields, *window_fields(self.made, self.input.by_name[self.made.time]))

    @property
    def row_time(self) -> str | None:
        return self.made.bound if self.is_session and self.made.domain == EVENT else self.input.row_time

    @property
    def window(self) -> Window:
        return self.made

    @property
    def is_session(self) -> bool:
        """Whether a row's window is known when no row can touch it any more."""
        return self.made.kind == "SESSION"

    @property
    def label(self) -> str:
        return self.made.kind


@dataclass(frozen=True)
class Union(Relation):
    """The rows of several relations of the same columns."""

    parts: tuple[Relation, ...]

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.parts

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        found = []
        for at, field in enumerate(self.parts[0].fields):
            is_time = all(part.row_time == part.fields[at].name for part in self.parts)
            found.append(field if is_time or not field.time else replace(field, time=None, lost="a UNION mixes times"))
        return tuple(found)

    @property
    def row_time(self) -> str | None:
        return next((f.name for f in self.fields if f.time == EVENT and f.name == self.parts[0].row_time), None)

    @property
    def label(self) -> str:
        return "UNION ALL"


@dataclass(frozen=True)
class Unnest(Relation):
    """Each row with each item of an array or map of it."""

    input: Relation
    of: Scalar
    made: tuple[Field, ...]
    has_place: bool = False
    keeps_empty: bool = False
    """Whether a row without items stays, as LEFT JOIN says."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *self.made)

    @property
    def row_time(self) -> str | None:
        return self.input.row_time

    @property
    def label(self) -> str:
        return "UNNEST"


@dataclass(frozen=True)
class FunctionCall:
    """A call of a user's function: the column of its result, and the columns that it gets."""

    name: str
    function: Any
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Functions(OfSameColumns):
    """Rows, and what functions of the user's give for each."""

    calls: tuple[FunctionCall, ...]

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(Field(call.name, call.function.result) for call in self.calls))

    @property
    def label(self) -> str:
        return "a function"


def only(relation: Relation, names: Sequence[str]) -> Relation:
    """The relation with these columns alone, in this order."""
    return relation if list(names) == relation.names else Project(relation, passed_on(relation, names))
