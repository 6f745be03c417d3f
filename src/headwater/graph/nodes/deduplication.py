"""Steps that give one row of each key: the first, or the last so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self

from headwater.durations import Duration, duration_text
from headwater.errors import GraphError
from headwater.graph.changelog import Changelog, ChangelogMode
from headwater.graph.checks import checked_ttl
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, forgets, ttls

KNOWN_UNTIL: Final = "known_until"
"""The state of `deduplicate`."""
SINCE_FIRST: Final = " after the row that went on"
"""Behind how long a key is known, in the words of a graph and of a savepoint."""


@dataclass(frozen=True, kw_only=True)
class DeduplicateNode(Node):
    """Lets the first row of each key through, and for a time no other."""

    operation: ClassVar[str] = "deduplicate"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    ttl_ms: int | None

    @classmethod
    def of(cls, flow: Flow, *, by: str | Sequence[str], ttl: Duration | None = None, name: str = "deduplicate") -> Self:
        """By one column or several. Without `ttl` a key is known for ever."""
        key = _key(flow, by, name)
        return cls(name=name, inputs=flow.keyed(key).edges, schema=flow.schema, key=key, ttl_ms=checked_ttl(ttl, name))

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def grows(self) -> str | None:
        return "every key of its input" if self.ttl_ms is None else None

    def kept(self) -> dict[str, Any]:
        until = None if self.ttl_ms is None else f"{duration_text(self.ttl_ms)}{SINCE_FIRST}"
        return {"key": self.key.typed(), **ttls({KNOWN_UNTIL: until})}


@dataclass(frozen=True, kw_only=True)
class DistinctNode(Node):
    """The first row of each key, by arrival, whatever times rows have; what comes later is not told."""

    operation: ClassVar[str] = "distinct"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    ttl_ms: int | None = None
    """After how long, in processing time, a key is forgotten, so that the next row is a first one."""
    since_first: bool = False
    """Whether that is so long after the row that was told, and not after the last one that came."""

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        by: str | Sequence[str],
        ttl: Duration | None = None,
        since_first: bool = False,
        name: str = "distinct",
    ) -> Self:
        key = _key(flow, by, name)
        return cls(
            name=name,
            inputs=flow.keyed(key).edges,
            schema=flow.schema,
            key=key,
            ttl_ms=checked_ttl(ttl, name),
            since_first=since_first,
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def grows(self) -> str | None:
        return "every key of its input" if self.ttl_ms is None else None

    def kept(self) -> dict[str, Any]:
        since = "its first row" if self.since_first else "the last row of its key"
        return {"key": self.key.typed(), **forgets("seen", self.ttl_ms, since)}


@dataclass(frozen=True, kw_only=True)
class KeepFirstNode(Node):
    """The row of each key with the earliest event time, given when the watermark has passed it; late rows are dropped.

    Of rows of one time it is the first to arrive.
    """

    operation: ClassVar[str] = "keep_first"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    without_event_time: ClassVar[str] = "take event time from a column with .assign_watermarks(...)"

    key: Key
    ttl_ms: int | None = None
    """After how long, in processing time, it is forgotten that the row of a key was given."""

    @classmethod
    def of(cls, flow: Flow, *, by: str | Sequence[str], ttl: Duration | None = None, name: str = "keep_first") -> Self:
        key, ttl_ms = _key(flow, by, name), checked_ttl(ttl, name)
        return cls(name=name, inputs=flow.keyed(key).edges, schema=flow.schema, key=key, ttl_ms=ttl_ms)

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def needs_times(self) -> bool:
        return True

    @property
    def waits_for_event_time(self) -> bool:
        return True

    @property
    def grows(self) -> str | None:
        return "every key of its input" if self.ttl_ms is None else None

    def kept(self) -> dict[str, Any]:
        words: dict[str, Any] = {"key": self.key.typed(), "rows": self.schema.ddl()}
        return {**words, **forgets("given", self.ttl_ms, "it was given")}


@dataclass(frozen=True, kw_only=True)
class KeepLastNode(Node):
    """The row of each key with the latest event time so far, as a changelog by key; late rows count like others.

    Of rows of one time it is the last to arrive.
    """

    operation: ClassVar[str] = "keep_last"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    without_event_time: ClassVar[str] = "take event time from a column with .assign_watermarks(...)"

    key: Key
    ttl_ms: int | None = None
    """After how long without rows, in processing time, a key is forgotten."""

    @classmethod
    def of(cls, flow: Flow, *, by: str | Sequence[str], ttl: Duration | None = None, name: str = "keep_last") -> Self:
        key = _key(flow, by, name)
        return cls(
            name=name,
            inputs=flow.keyed(key).edges,
            schema=flow.schema,
            changelog=Changelog(ChangelogMode.UPSERT, key.columns, keeps_times=False),
            key=key,
            ttl_ms=checked_ttl(ttl, name),
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def needs_times(self) -> bool:
        return True

    @property
    def sends_before(self) -> bool:
        """Whether a row comes with the one whose place it takes."""
        return self.changelog.mode is ChangelogMode.RETRACT

    @property
    def grows(self) -> str | None:
        return "every key of its input" if self.ttl_ms is None else None

    def kept(self) -> dict[str, Any]:
        words: dict[str, Any] = {"key": self.key.typed(), "rows": self.schema.ddl()}
        return {**words, **forgets("rows", self.ttl_ms)}


def _key(flow: Flow, by: str | Sequence[str], step: str) -> Key:
    columns = (by,) if isinstance(by, str) else tuple(by)
    if not columns or not all(isinstance(column, str) for column in columns):
        raise GraphError.bad_argument(step, "needs columns to tell rows by", by, "write deduplicate('id')")
    return Key.of(flow.schema, columns, step=step)
