"""OVER: functions of each row and the rows before it in time, of the same partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import pyarrow as pa

from headwater.aggregates import Aggregate, result_fields
from headwater.data.schema import Schema, type_ddl
from headwater.durations import Duration
from headwater.errors import GraphError
from headwater.functions import EVENT, PROCESSING
from headwater.graph.checks import checked_ttl
from headwater.graph.edges import NO_KEY, Key
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node, lasts, ttls

ROWS, RANGE = "rows", "range"


@dataclass(frozen=True)
class Frame:
    """The rows that an aggregate is over: those up to the current one.

    By rows each row is a step of its own. By range the rows of one time are one, and all have the same result.
    """

    kind: str = RANGE
    preceding: int | None = None
    """From how many rows, or milliseconds, before the current one on; None from the first row on."""

    def __str__(self) -> str:
        start = "unbounded" if self.preceding is None else f"{self.preceding}{'' if self.kind == ROWS else ' ms'}"
        return f"{self.kind} {start} preceding"


ALL_SO_FAR = Frame()
"""The frame that SQL means where it names none."""


@dataclass(frozen=True)
class Numbering:
    """The place of a row among those up to it: `row_number`, `rank` (that of the first of its time), `dense_rank`."""

    function: str

    def __str__(self) -> str:
        return f"{self.function}()"


@dataclass(frozen=True)
class Lag:
    """The value of a column so many rows before; where there is no such row, that of `default` in the row itself."""

    column: str
    offset: int = 1
    default: str | None = None

    def __str__(self) -> str:
        return f"lag({self.column!r}, {self.offset}{'' if self.default is None else f', {self.default!r}'})"


OverFunction = Aggregate | Numbering | Lag


@dataclass(frozen=True, kw_only=True)
class OverAggregateNode(Node):
    """Each row with the results of functions over the rows of its partition up to it, in the order of time.

    In event time a row is given when the watermark has passed its time; one that comes later is dropped. Numberings and
    lags are over all rows before, whatever the frame is.
    """

    operation: ClassVar[str] = "over_aggregate"
    is_stateful: ClassVar[bool] = True
    passes_times: ClassVar[bool] = True
    uses_backend: ClassVar[bool] = True
    without_event_time: ClassVar[str] = "order rows by time='processing'"

    key: Key
    rows: Schema
    time: str
    frame: Frame
    functions: Mapping[str, OverFunction]
    ttl_ms: int | None = None

    @classmethod
    def of(
        cls,
        flow: Flow,
        *,
        functions: Mapping[str, OverFunction],
        partition_by: Sequence[str] = (),
        time: str = EVENT,
        frame: Frame = ALL_SO_FAR,
        ttl: Duration | None = None,
        name: str = "over_aggregate",
    ) -> Self:
        """Without columns to partition by, all rows are one partition, on one subtask.

        With `ttl` a partition that has had no rows for so long, and of which none waits, is forgotten.
        """
        if time not in (EVENT, PROCESSING):
            raise GraphError.bad_argument(
                name, f"orders rows by time={EVENT!r} or {PROCESSING!r}", time, "choose one of them"
            )
        _check_frame(frame, name)
        fields = _fields(functions, flow.schema, name)
        key = Key.of(flow.schema, tuple(partition_by), step=name) if partition_by else NO_KEY
        return cls(
            name=name,
            inputs=(flow.keyed(key) if partition_by else flow.together()).edges,
            schema=Schema.of(pa.schema([*flow.schema.arrow, *fields])),
            key=key,
            rows=flow.schema,
            time=time,
            frame=frame,
            functions=functions,
            ttl_ms=checked_ttl(ttl, name),
        )

    def lasting(self, ttl_ms: int) -> Self:
        return replace(self, ttl_ms=self.ttl_ms or ttl_ms)

    @property
    def endless_states(self) -> list[str]:
        """Those with something of every partition there ever was: all but the rows of a stretch of time."""
        found = set()
        for function in self.functions.values():
            if isinstance(function, Numbering):
                found.add("numbers")
            elif isinstance(function, Lag):
                found.add("last")
            elif self.frame.preceding is None:
                found.add("distinct" if function.function == "count_distinct" else "kept")
            elif self.frame.kind == ROWS:
                found.add("last")
        return sorted(found)

    @property
    def needs_times(self) -> bool:
        return self.time == EVENT

    @property
    def waits_for_event_time(self) -> bool:
        return self.time == EVENT

    def kept(self) -> dict[str, Any]:
        return {
            "key": self.key.typed(),
            "rows": self.rows.ddl(),
            "time": self.time,
            "frame": str(self.frame),
            "functions": {name: str(function) for name, function in self.functions.items()},
            **ttls({name: lasts(self.ttl_ms, "the last row of its key") for name in self.endless_states}),
        }


def _check_frame(frame: Frame, step: str) -> None:
    if frame.kind not in (ROWS, RANGE) or (frame.preceding is not None and frame.preceding < 0):
        raise GraphError.bad_argument(
            step,
            f"needs a frame by {ROWS!r} or {RANGE!r}, from the first row or so many before, to the current one",
            str(frame),
            "write Frame('rows', 2)",
        )


def _fields(functions: Mapping[str, OverFunction], rows: Schema, step: str) -> list[pa.Field]:
    """The columns that the functions give, in their order; checks all of it."""
    if not functions:
        raise GraphError.bad_argument(step, "needs a function", "none", "name one, as in total=hw.sum('amount')")
    taken = [name for name in functions if name in rows.names]
    if taken:
        raise GraphError.bad_argument(step, "shows results in new columns", taken[0], "choose other names")
    aggregates = {name: one for name, one in functions.items() if not isinstance(one, Numbering | Lag)}
    fields = {field.name: field for field in result_fields(aggregates, rows, step)} if aggregates else {}
    for name, function in functions.items():
        if isinstance(function, Numbering):
            fields[name] = _numbered(name, function, step)
        elif isinstance(function, Lag):
            fields[name] = _lagged(name, function, rows, step)
    return [fields[name] for name in functions]


def _numbered(name: str, numbering: Numbering, step: str) -> pa.Field:
    if numbering.function not in ("row_number", "rank", "dense_rank"):
        raise GraphError.bad_argument(
            step, "numbers rows by row_number, rank or dense_rank", numbering.function, "choose one of them"
        )
    return pa.field(name, pa.int64(), nullable=False)


def _lagged(name: str, lag: Lag, rows: Schema, step: str) -> pa.Field:
    dtype = rows.field(lag.column).type
    if lag.offset < 0:
        raise GraphError.bad_argument(
            step, "looks back in time, as rows to come are not known", str(lag), "write an offset of 0 or more"
        )
    if lag.default is not None and rows.field(lag.default).type != dtype:
        other = type_ddl(rows.field(lag.default).type)
        raise GraphError.bad_argument(
            step, f"needs a default of the type of {lag.column!r}, {type_ddl(dtype)}", other, "cast it with select"
        )
    return pa.field(name, dtype)
