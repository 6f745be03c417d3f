"""What all relations have: columns, time, windows, and expressions over them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sqlglot import exp

from headwater.data.functions.terms import Term
from headwater.data.functions.types import STRING, TIMESTAMP_3, Type, quoted

EVENT, PROCESSING = "event", "processing"
_LONGEST_NAME = 60
"""Longer texts are cut, and told apart by a digest, as are those with quotes."""
_QUOTED_WORD = re.compile(r'"([A-Za-z_]\w*)"')


@dataclass(frozen=True)
class Field:
    """A column: its name, its type, and whether it is a time attribute."""

    name: str
    type: Type
    time: str | None = None
    """EVENT: windows and joins in event time may go by it. PROCESSING: it is the clock."""
    lost: str = ""
    """Why it is a time attribute no more."""
    is_nullable: bool = True
    delay: int = 0
    """How many milliseconds values of a time attribute may be behind the watermark."""


@dataclass(frozen=True)
class Scalar:
    """An expression over the columns of a relation: the tree, for rules to look at, and what DuckDB computes."""

    tree: exp.Expr
    term: Term

    @property
    def column(self) -> str | None:
        """The column that it is, if it is one and no more."""
        if isinstance(self.tree, exp.Column) and len(self.tree.parts) == 1:
            return self.tree.name
        return None

    @property
    def columns(self) -> set[str]:
        """The columns that it reads."""
        return {column.parts[0].name for column in self.tree.find_all(exp.Column)}


def column_tree(name: str) -> exp.Column:
    """A column as expressions name it."""
    return exp.Column(this=exp.Identifier(this=name, quoted=True))


@dataclass(frozen=True)
class Window:
    """The windows of rows: the columns that show them, and how they are made."""

    kind: str
    """TUMBLE, HOP, CUMULATE, SESSION."""
    time: str
    """The column that they are over, where they are not there yet."""
    start: str
    end: str
    """Columns; together they say which window a row is in."""
    bound: str | None
    """The column of `window_time`, the last moment of the window."""
    sizes: tuple[int, ...] = ()
    """Milliseconds: the size; slide or step and size; or the gap."""
    offset: int = 0
    partition: tuple[str, ...] = ()
    domain: str = EVENT
    is_closed: bool = False
    """Whether rows come when their window is over, all of them then, and at its last moment."""

    def renamed(self, names: dict[str, str]) -> Window | None:
        """The same after a projection; None where the columns that show it are gone."""
        if self.start not in names or self.end not in names:
            return None
        bound = None if self.bound is None else names.get(self.bound)
        return replace(self, start=names[self.start], end=names[self.end], bound=bound)


@dataclass(frozen=True)
class Relation:
    """What all have."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return ()

    @property
    def fields(self) -> tuple[Field, ...]:
        raise NotImplementedError

    @property
    def updates(self) -> bool:
        """Whether rows change or go after they were given."""
        return any(relation.updates for relation in self.inputs)

    @property
    def row_time(self) -> str | None:
        """The column whose value is the event time that rows travel with."""
        return None

    @property
    def window(self) -> Window | None:
        return None

    @property
    def key(self) -> tuple[str, ...] | None:
        """Columns of which no two rows are equal at a time, if some are known."""
        return None

    @property
    def label(self) -> str:
        """What it is, as errors and EXPLAIN say it."""
        return type(self).__name__

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {field.name: field for field in self.fields}

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    @property
    def updater(self) -> Relation:
        """The relation that makes updates, of those this one reads, or this one itself."""
        for relation in self.inputs:
            if relation.updates:
                return relation.updater
        return self


@dataclass(frozen=True)
class OfSameColumns(Relation):
    """Has the columns of its input."""

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
class Called:
    """One function that is computed over rows: the name of its column, and what computes it of columns of the input."""

    name: str
    kernel: Any
    """An `Aggregate`; with OVER also a `Numbering` or a `Lag`."""
    type: Type


@dataclass(frozen=True)
class Order:
    """A column that rows are ordered by."""

    column: str
    is_falling: bool
    is_null_first: bool


def window_fields(window: Window, time: Field) -> tuple[Field, Field, Field]:
    """The columns that show a window; the last of its moments is a time attribute, as the column that it is over."""
    assert window.bound is not None
    return (
        Field(window.start, TIMESTAMP_3, is_nullable=False),
        Field(window.end, TIMESTAMP_3, is_nullable=False),
        Field(window.bound, replace(time.type, precision=3), time.time, is_nullable=False),
    )


def of_term(relation: Relation, term: Term) -> Scalar:
    """A term over columns of a relation as an expression; a column as it is, as one."""
    used = [name for name in relation.names if quoted(name) in term.sql]
    if len(used) == 1 and term == Term(relation.by_name[used[0]].type, quoted(used[0])):
        return Scalar(column_tree(used[0]), term)
    return Scalar(exp.Anonymous(this=term.sql, expressions=[column_tree(name) for name in used]), term)


def as_text(relation: Relation, names: Iterable[str]) -> Scalar:
    """Values of columns as one text, the same for the same values, NULLs too."""
    values = ", ".join(quoted(name) for name in names)
    return of_term(relation, Term(STRING, f"CAST(json_array({values}) AS VARCHAR)"))


def passed_on(relation: Relation, names: Iterable[str]) -> tuple[tuple[str, Scalar], ...]:
    """Items of a projection that are columns as they are."""
    return tuple((name, passed(relation, name)) for name in names)


def passed(relation: Relation, name: str) -> Scalar:
    """A column as an expression."""
    return Scalar(column_tree(name), Term(relation.by_name[name].type, quoted(name)))


def named_after(scalar: Scalar, taken: Iterable[str]) -> str:
    """The name of a column for an expression: its own if it is one, or its text.

    State is kept under such names, so one must not stand for another expression when the query around it has changed.
    """
    return scalar.column or name_of(scalar.tree, taken)


def name_of(tree: exp.Expr, taken: Iterable[str]) -> str:
    """The text of an expression as a name that is not taken."""
    text = tree.sql()
    plain = _QUOTED_WORD.sub(r"\1", text)
    is_plain = "'" not in text and '"' not in plain and not plain.startswith("__")
    if not is_plain or len(plain) > _LONGEST_NAME:
        plain = f"{plain[:_LONGEST_NAME].lstrip('_')} #{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return unused(plain, taken)


def unused(name: str, taken: Iterable[str]) -> str:
    """A name like this one that is not taken."""
    taken = set(taken)
    found, number = name, 0
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found
