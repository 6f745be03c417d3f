"""Relations of groups, and of rows together with those before them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headwater.data.functions.types import TIMESTAMP_3
from headwater.sql.relations.core import EVENT, Called, Field, OfSameColumns, Relation, Window, window_fields


@dataclass(frozen=True)
class Distinct(OfSameColumns):
    """Each row once."""

    @property
    def window(self) -> Window | None:
        return None

    @property
    def key(self) -> tuple[str, ...] | None:
        return tuple(self.names)

    @property
    def label(self) -> str:
        return "DISTINCT"


@dataclass(frozen=True)
class Aggregate(Relation):
    """One row for each key, which changes as rows come; or for each key and window, when the window is over."""

    input: Relation
    keys: tuple[str, ...]
    calls: tuple[Called, ...]
    windowed: Window | None = None
    ttl: int | None = None

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        known = self.input.by_name
        keys = tuple(replace(known[name], time=None, lost="a GROUP BY has grouped by it") for name in self.keys)
        results = tuple(Field(call.name, call.type) for call in self.calls)
        if self.windowed is None:
            return (*keys, *results)
        time = known.get(self.windowed.time) or Field("", TIMESTAMP_3, EVENT)
        return (*keys, *window_fields(self._shown, replace(time, time=self.windowed.domain)), *results)

    @property
    def _shown(self) -> Window:
        assert self.windowed is not None
        return replace(self.windowed, bound=self.windowed.bound or "window_time", is_closed=True)

    @property
    def updates(self) -> bool:
        return self.windowed is None

    @property
    def updater(self) -> Relation:
        return self

    @property
    def row_time(self) -> str | None:
        return None if self.windowed is None else self._shown.bound

    @property
    def window(self) -> Window | None:
        return None if self.windowed is None else self._shown

    @property
    def key(self) -> tuple[str, ...]:
        return self.keys if self.windowed is None else (*self.keys, self.windowed.start, self.windowed.end)

    @property
    def label(self) -> str:
        by = f" BY {', '.join(self.keys)}" if self.keys else ""
        return f"{'windowed ' if self.windowed else ''}GROUP{by}" if by or self.windowed else "an aggregate of all rows"


@dataclass(frozen=True)
class Over(OfSameColumns):
    """Each row, and aggregates over those before it in its partition."""

    partition: tuple[str, ...] = ()
    time: str = ""
    domain: str = EVENT
    frame: str = "RANGE"
    preceding: int | None = None
    """Rows or milliseconds before the current one; None is all of them."""
    calls: tuple[Called, ...] = ()

    @property
    def fields(self) -> tuple[Field, ...]:
        return (*self.input.fields, *(Field(call.name, call.type) for call in self.calls))

    @property
    def window(self) -> Window | None:
        return None

    @property
    def label(self) -> str:
        return "OVER"


@dataclass(frozen=True)
class SortByTime(OfSameColumns):
    """Rows in the order of event time."""

    @property
    def label(self) -> str:
        return "ORDER BY time"
