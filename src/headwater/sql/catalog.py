"""What has a name in SQL: tables, views and functions, made by DDL or from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from headwater.connectors.contract import Sink, Source
from headwater.graph.flow import Flow
from headwater.sql.errors import SqlError
from headwater.sql.functions import AggregateCall, Function
from headwater.sql.looked_up import LookedUp
from headwater.sql.relations import Field, Relation
from headwater.sql.text.places import Place
from headwater.sql.text.statements import CreateTable
from headwater.watermarks import Watermarks


@dataclass(frozen=True)
class ComputedColumn:
    """A column that is computed of others when the table is read."""

    name: str
    tree: exp.Expr
    text: str
    """What it was read from."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table: its columns and time, and where its rows come from and go to. Two of one name are never the same."""

    name: str
    fields: tuple[Field, ...]
    """What is stored, before anything is computed."""
    computed: tuple[ComputedColumn, ...] = ()
    order: tuple[str, ...] = ()
    """All columns as they were declared, stored and computed."""
    time: str | None = None
    """The column of its WATERMARK."""
    watermarks: Watermarks | None = None
    primary_key: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    source: Source | None = None
    """What reads it, if it can be read."""
    sink: Sink | None = None
    """What writes it, if it can be written to."""
    flow: Flow | None = None
    """The stream that it is, if it is one."""
    lookup: LookedUp | None = None
    """What rows are looked up in by key, if they can be."""
    changes: bool = False
    """Whether rows that are read may change or go."""
    declared: CreateTable | None = None
    """The statement that made it, if one did."""


class Catalog:
    """Tables and views by name, and functions."""

    def __init__(self) -> None:
        self._named: dict[str, Table | Relation] = {}
        self._texts: dict[str, str] = {}
        self.functions: dict[str, Function] = {}
        """Those of the user, by name in capital letters."""
        self.aggregates: dict[str, AggregateCall] = {}
        """Those over groups."""

    def add(self, name: str, what: Table | Relation, place: Place | None = None, text: str = "") -> None:
        """Give something a name that is not taken; `text` is the query of a view."""
        if name in self._named:
            kind = "table" if isinstance(self._named[name], Table) else "view"
            raise SqlError.already_there(place, kind, name)
        self._named[name], self._texts[name] = what, text

    def drop(self, name: str, kind: str, place: Place | None = None) -> None:
        known = self._named.get(name)
        if known is None or isinstance(known, Table) != (kind == "table"):
            raise SqlError.no_table(place, name, self._named)
        del self._named[name]

    def get(self, name: str) -> Table | Relation | None:
        return self._named.get(name)

    def text_of(self, name: str) -> str:
        """The query of a view, as it was written; nothing where Python has made it."""
        return self._texts[name]

    def tables(self) -> list[str]:
        """The names of tables."""
        return sorted(name for name, known in self._named.items() if isinstance(known, Table))

    def views(self) -> list[str]:
        return sorted(name for name, known in self._named.items() if not isinstance(known, Table))

    def __iter__(self) -> Any:
        return iter(self._named)
