"""Sessions over rows that are only added, as SQL has them: what they come to, or their rows, when they are over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.aggregates import Aggregate, result_fields
from headwater.aggregates.declared import is_in_any_order
from headwater.data.schema import Schema
from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.functions import EVENT, PROCESSING
from headwater.graph.edges import NO_KEY, Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, named

MOMENT = pa.timestamp("us", "UTC")


@dataclass(frozen=True, kw_only=True)
class SessionNode(Node):
    """The sessions of each key, given when they are over: aggregates of their rows, or each row with the bounds of its own.

    They fire once, at their end, and late rows are dropped. Windows of streams have triggers, panes and late outputs too.
    """

    operation: ClassVar[str] = "session"
    is_stateful: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    without_event_time: ClassVar[str] = "take sessions in time='processing'"

    key: Key
    rows: Schema
    gap_ms: int
    time: str
    aggregates: Mapping[str, Aggregate] | None = None

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        gap: Duration,
        partition_by: Sequence[str] = (),
        time: str = EVENT,
        aggregates: Mapping[str, Aggregate] | None = None,
        bounds: tuple[str, str] = ("window_start", "window_end"),
        name: str = "session",
    ) -> Self:
        """Without columns to partition by, all rows have one key. `bounds` are the columns that show start and end."""
        if time not in (EVENT, PROCESSING):
            raise GraphError.bad_argument(
                name, f"takes sessions in time={EVENT!r} or {PROCESSING!r}", time, "choose one of them"
            )
        key = Key.of(flow.schema, tuple(partition_by), step=name) if partition_by else NO_KEY
        shown = [flow.schema.field(column) for column in key.columns] if aggregates is not None else flow.schema.arrow
        results = result_fields(aggregates, flow.schema, name) if aggregates is not None else []
        taken = [bound for bound in bounds if bound in {field.name for field in (*shown, *results)}]
        if taken:
            raise GraphError.bad_argument(name, "shows windows in new columns", taken[0], "choose other bounds=")
        window = [pa.field(bound, MOMENT, nullable=False) for bound in bounds]
        return cls(
            name=name,
            inputs=(flow.keyed(key) if partition_by else flow.together()).edges,
            schema=Schema.of(pa.schema([*shown, *window, *results])),
            key=key,
            rows=flow.schema,
            gap_ms=_checked(duration_ms(gap), name),
            time=time,
            aggregates=aggregates,
        )

    @property
    def folds(self) -> bool:
        """Whether accumulators are kept, and no rows."""
        return self.aggregates is not None and is_in_any_order(self.aggregates)

    @property
    def kept_columns(self) -> list[str]:
        """The columns of the rows that are kept."""
        if self.aggregates is None:
            return self.rows.names
        read = {*self.key.columns, *(column for one in self.aggregates.values() for column in one.columns)}
        return [name for name in self.rows.names if name in read]

    @property
    def needs_times(self) -> bool:
        return self.time == EVENT

    @property
    def waits_for_event_time(self) -> bool:
        return self.time == EVENT

    def kept(self) -> dict[str, Any]:
        words = {"key": self.key.typed(), "rows": self.rows.ddl(), "gap ms": self.gap_ms, "time": self.time}
        return words if self.aggregates is None else {**words, "aggregates": named(self.aggregates)}


def _checked(gap_ms: int, step: str) -> int:
    if gap_ms <= 0:
        raise GraphError.bad_argument(step, "needs a gap between sessions", f"{gap_ms} ms", "write gap='30 min'")
    return gap_ms
