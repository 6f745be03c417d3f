"""Aggregates over all rows of a key so far: built-in ones, and a function of two rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.aggregates import Aggregate, result_fields
from headwater.aggregates.declared import refuse_taking_back
from headwater.data.schema import Schema
from headwater.durations import Duration
from headwater.graph.changelog import APPEND_ONLY, APPEND_OR_RETRACT, Changelog, ChangelogMode, Modes
from headwater.graph.checks import check_callable, check_keyed, checked_ttl
from headwater.graph.edges import Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, forgets, named


@dataclass(frozen=True, kw_only=True)
class RunningNode(Node):
    """Built-in aggregates over all rows of a key so far, or of a changelog over those that are there."""

    operation: ClassVar[str] = "running"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    key: Key
    input_schema: Schema
    aggregates: Mapping[str, Aggregate]
    takes_back: bool
    """Whether rows may be taken back, so that more is kept of them."""
    ttl_ms: int | None = None
    """After how long without rows, in processing time, a key is forgotten."""

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        aggregates: Mapping[str, Aggregate],
        updates: bool = False,
        ttl: Duration | None = None,
        name: str = "agg",
    ) -> Self:
        """With `updates` a result replaces the last of its key also over rows that are only added.

        Then a flow may be without key: all rows are one group, on one subtask. And over a changelog there may be no
        aggregates: it tells which keys there are. With `ttl` a key that has had no rows for so long is forgotten, and
        nothing is told of it.
        """
        takes_back = not flow.changelog.is_append_only
        if updates and flow.key.is_nothing:
            flow = flow.together()
        else:
            check_keyed(flow, name)
        keys = flow.key.fields(flow.schema)
        tells_keys = updates and takes_back and bool(keys) and not aggregates
        results = [] if tells_keys else result_fields(aggregates, flow.schema, name)
        if takes_back:
            refuse_taking_back(aggregates, name)
        return cls(
            name=name,
            inputs=flow.edges,
            schema=Schema.of(pa.schema([*keys, *results])),
            changelog=_told(keys) if takes_back or updates else APPEND_ONLY,
            key=flow.key,
            input_schema=flow.schema,
            aggregates=aggregates,
            takes_back=takes_back,
            ttl_ms=checked_ttl(ttl, name),
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def tells_changes(self) -> bool:
        """Whether results are a changelog."""
        return not self.changelog.is_append_only

    @property
    def sends_before(self) -> bool:
        """Whether an update comes with the result that it takes the place of."""
        return self.changelog.mode is ChangelogMode.RETRACT

    def kept(self) -> dict[str, Any]:
        words: dict[str, Any] = {
            "key": self.key.typed(),
            "aggregates": named(self.aggregates),
            "rows": self.input_schema.ddl(),
        }
        words |= {"takes back": True} if self.takes_back else {}
        return {**words, **forgets("kept", self.ttl_ms)}


def _told(keys: Sequence[pa.Field]) -> Changelog:
    """The result of a key replaces its last; where there is no key, that one is told."""
    return Changelog(
        ChangelogMode.UPSERT if keys else ChangelogMode.RETRACT, tuple(key.name for key in keys), keeps_times=False
    )


@dataclass(frozen=True, kw_only=True)
class ReduceNode(Node):
    """The rows of a key so far as one row, after each of them."""

    operation: ClassVar[str] = "reduce"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True

    key: Key
    function: Callable[[Any, Any], Any]
    ttl_ms: int | None = None
    """After how long without rows, in processing time, a key is forgotten."""

    @classmethod
    def of(cls, flow: Flow, *, function: Callable[[Any, Any], Any], name: str = "reduce") -> Self:
        check_keyed(flow, name)
        check_callable(function, name)
        return cls(name=name, inputs=flow.edges, schema=flow.schema, key=flow.key, function=function)

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=ttl_ms)

    def kept(self) -> dict[str, Any]:
        return {"key": self.key.typed(), "rows": self.schema.ddl(), **forgets("reduced", self.ttl_ms)}
