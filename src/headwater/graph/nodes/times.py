"""Event time taken anew in the middle of a job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.graph.changelog import APPEND_OR_RETRACT, Modes
from headwater.graph.checks import check_time_column
from headwater.graph.flow import Flow
from headwater.graph.nodes.core import Node
from headwater.watermarks import Watermarks


@dataclass(frozen=True, kw_only=True)
class AssignWatermarksNode(Node):
    """Takes event time from a column, and gives each channel that passes a watermark of its own.

    What it has said is kept by those who hear it, so it keeps nothing itself.
    """

    operation: ClassVar[str] = "assign_watermarks"
    sets_time: ClassVar[bool] = True
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    watermarks: Watermarks

    @classmethod
    def of(cls, flow: Flow, *, watermarks: Watermarks, name: str = "assign_watermarks") -> Self:
        if not isinstance(watermarks, Watermarks):
            raise GraphError.bad_argument(name, "needs a watermark strategy", watermarks, "use one of hw.Watermarks")
        if watermarks.column is None:
            raise GraphError.bad_argument(
                name,
                "takes event time from a column",
                "Watermarks.none()",
                "use another strategy, or leave the step out",
            )
        check_time_column(flow.schema, watermarks.column, name)
        if watermarks.group is not None:
            raise GraphError.bad_argument(
                name,
                "cannot let sources wait for each other, which is what alignment does",
                f"aligned({watermarks.group!r}, ...)",
                "give the sources aligned strategies, and this step one that is not",
            )
        told = flow.changelog.retracting()  # a row that is taken back has the same time in its column
        changelog = told if told.is_append_only else replace(told, keeps_times=True)
        return cls(name=name, inputs=flow.edges, schema=flow.schema, changelog=changelog, watermarks=watermarks)


@dataclass(frozen=True, kw_only=True)
class DelayWatermarksNode(Node):
    """Takes event time from a column whose values may be behind the watermark, and holds the watermark back by as much."""

    operation: ClassVar[str] = "delay_watermarks"
    sets_time: ClassVar[bool] = True
    taken: ClassVar[Modes] = APPEND_OR_RETRACT

    column: str
    delay_ms: int

    @classmethod
    def of(cls, flow: Flow, *, column: str, delay: Duration, name: str = "delay_watermarks") -> Self:
        check_time_column(flow.schema, column, name)
        delay_ms = duration_ms(delay, what=f"the delay of step {name!r}")
        changelog = flow.changelog.retracting()
        return cls(
            name=name, inputs=flow.edges, schema=flow.schema, changelog=changelog, column=column, delay_ms=delay_ms
        )
