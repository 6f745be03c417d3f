"""The programs of transcripts about OVER: each row with what functions make of the rows up to it."""

from __future__ import annotations

from typing import Any

import headwater as hw
from headwater.graph.nodes import OverAggregateNode
from headwater.graph.nodes.over import Frame, Lag, Numbering
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program

NUMBERS = {name: Numbering(name) for name in ("row_number", "rank", "dense_rank")}


def over(rows: Stream, uid: str, **settings: Any) -> Stream:
    """The node has no handle on streams of its own."""
    return rows._add(OverAggregateNode.of(rows._flow, name=uid, **settings))


def over_all(rows: Stream) -> dict[str, Stream]:
    """Over all rows so far: by time, row by row, and without partitions."""
    total = {"total": hw.sum("v"), "top": hw.max("v")}
    return {
        "main": over(rows, "by_range", functions=total, partition_by=["k"]),
        "rows": over(rows, "by_rows", functions=total, partition_by=["k"], frame=Frame("rows")),
        "together": over(rows, "together", functions={"n": hw.count(), "different": hw.count_distinct("v"), **NUMBERS}),
    }


def over_last(rows: Stream) -> dict[str, Stream]:
    """Over the last rows, and those of a stretch of time; and values of earlier rows."""
    some = {"total": hw.sum("v"), "all": hw.collect_list("v")}
    return {
        "main": over(rows, "by_range", functions=some, partition_by=["k"], frame=Frame("range", 2)),
        "rows": over(rows, "by_rows", functions=some, partition_by=["k"], frame=Frame("rows", 1)),
        "lags": over(
            rows, "lags", functions={"before": Lag("v", 2), "or_own": Lag("v", default="v")}, partition_by=["k"]
        ),
    }


def over_processing_time(rows: Stream) -> dict[str, Stream]:
    """In the order of arrival; by a stretch of time, when that time is over."""
    total = {"total": hw.sum("v")}
    settings: dict[str, Any] = {"partition_by": ["k"], "time": "processing"}
    return {
        "main": over(rows, "all", functions={**total, **NUMBERS}, **settings),
        "rows": over(rows, "by_rows", functions={**total, "before": Lag("v")}, frame=Frame("rows", 1), **settings),
        "range": over(rows, "by_range", functions=total, frame=Frame("range", 5), **settings),
    }


def over_ttl(rows: Stream) -> dict[str, Stream]:
    """Partitions that are forgotten; rows of a stretch of time are not."""
    settings: dict[str, Any] = {"partition_by": ["k"], "ttl": "10 ms"}
    total = {"total": hw.sum("v")}
    return {
        "main": over(rows, "all", functions={**total, "different": hw.count_distinct("v"), **NUMBERS}, **settings),
        "rows": over(rows, "by_rows", functions={**total, "before": Lag("v")}, frame=Frame("rows", 1), **settings),
        "range": over(rows, "by_range", functions=total, frame=Frame("range", 1000), **settings),
        "together": over(rows, "together", functions={"n": hw.count()}, ttl="10 ms"),
    }


PROGRAMS: dict[str, Program] = {
    "over_all": over_all,
    "over_last": over_last,
    "over_ttl": over_ttl,
    "over_processing_time": over_processing_time,
}
