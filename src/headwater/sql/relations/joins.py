"""Joins, by what bounds the rows that can meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from headwater.sql.relations.core import EVENT, Field, Relation, Scalar, Window


@dataclass(frozen=True)
class Join(Relation):
    """Rows of two relations side by side. What differs by kind is in the classes below."""

    left: Relation
    right: Relation
    how: str
    """inner, left, right, full, semi or anti."""
    equal: tuple[tuple[str, str], ...]
    """Columns that must be equal, left ones with right ones."""
    right_names: tuple[str, ...]
    """What right columns are called behind the join."""
    rest: Scalar | None = None
    """What must be true besides, over the columns behind the join."""

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        why = f"a {self.label} gives rows in another order"
        left = [replace(field, time=None, lost=why) if field.time else field for field in self.left.fields]
        if self.how in ("semi", "anti"):
            return tuple(left)
        right = [
            replace(field, name=name, time=None, lost=why if field.time else field.lost)
            for field, name in zip(self.right.fields, self.right_names, strict=True)
        ]
        return (*left, *right)

    @property
    def shown_right(self) -> dict[str, str]:
        """Right columns, with what they are called behind the join."""
        return dict(zip(self.right.names, self.right_names, strict=True))

    @property
    def label(self) -> str:
        return f"{self.how} join"


@dataclass(frozen=True)
class RegularJoin(Join):
    """All rows so far of both sides; what it gives changes with them."""

    ttls: tuple[int | None, int | None] = (None, None)

    @property
    def updates(self) -> bool:
        return super().updates or self.how not in ("inner", "semi")

    @property
    def updater(self) -> Relation:
        return super().updater

    @property
    def key(self) -> tuple[str, ...] | None:
        """The keys of both sides together, where both have one and no row is without the other."""
        if self.how in ("semi", "anti"):
            return self.left.key
        if self.how != "inner" or self.left.key is None or self.right.key is None:
            return None
        return (*self.left.key, *(self.shown_right[name] for name in self.right.key))


@dataclass(frozen=True)
class IntervalJoin(Join):
    """Rows whose times are near: left time + lower <= right time <= left time + upper."""

    left_time: str = ""
    right_time: str = ""
    lower: int = 0
    upper: int = 0
    domain: str = EVENT

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Both times stay time attributes where no row is without them; the older one is behind the watermark."""
        times = {}
        if self.domain == EVENT and self.how in ("inner", "left"):
            times[self.left_time] = max(0, self.upper)
        if self.domain == EVENT and self.how in ("inner", "right"):
            times[self.shown_right[self.right_time]] = max(0, -self.lower)
        return tuple(
            replace(field, time=EVENT, lost="", delay=times[field.name]) if field.name in times else field
            for field in super().fields
        )

    @property
    def label(self) -> str:
        return "interval join"


@dataclass(frozen=True)
class WindowJoin(Join):
    """Rows of the same window."""

    left_window: Window | None = None
    right_window: Window | None = None

    @property
    def label(self) -> str:
        return "window join"

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        fields = super().fields
        bound = self.row_time
        return tuple(replace(f, time=EVENT, lost="") if f.name == bound else f for f in fields)

    @property
    def row_time(self) -> str | None:
        return self.left_window.bound if self.left_window is not None and self.how != "right" else None

    @property
    def window(self) -> Window | None:
        if self.left_window is None or self.how in ("right", "full"):
            return None
        return replace(self.left_window, is_closed=True)


@dataclass(frozen=True)
class TemporalJoin(Join):
    """Each left row with the version of the right one that was valid at its time."""

    time: str = ""

    @property
    def fields(self) -> tuple[Field, ...]:
        fields = list(super().fields)
        fields[: len(self.left.fields)] = self.left.fields
        return tuple(fields)

    @property
    def updates(self) -> bool:
        return False

    @property
    def row_time(self) -> str | None:
        return self.left.row_time

    @property
    def label(self) -> str:
        return "temporal join"


@dataclass(frozen=True)
class LookupJoin(TemporalJoin):
    """Each left row with what a table outside holds for its key now."""

    @property
    def updates(self) -> bool:
        return self.left.updates

    @property
    def label(self) -> str:
        return "look-up join"
