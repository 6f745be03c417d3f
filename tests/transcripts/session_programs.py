"""The programs of transcripts about sessions as SQL has them: what they come to, and their rows with their bounds."""

from __future__ import annotations

from typing import Any

from tests.transcripts.window_programs import in_ms

import headwater as hw
from headwater.graph.nodes import SessionNode
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


def sessions(rows: Stream, uid: str, **settings: Any) -> Stream:
    """The node has no handle on streams of its own."""
    return in_ms(rows._add(SessionNode.of(rows._flow, gap="10 ms", name=uid, **settings)))


def session(rows: Stream) -> dict[str, Stream]:
    """Aggregates of each key, also such as go by the order of rows; rows of each key; and one key for all rows."""
    return {
        "main": sessions(rows, "totals", partition_by=["k"], aggregates={"total": hw.sum("v")}),
        "values": sessions(rows, "values", partition_by=["k"], aggregates={"all": hw.collect_list("v")}),
        "rows": sessions(rows, "rows", partition_by=["k"]),
        "together": sessions(rows, "together", aggregates={"n": hw.count()}),
    }


def session_processing_time(rows: Stream) -> dict[str, Stream]:
    settings: dict[str, Any] = {"partition_by": ["k"], "time": "processing"}
    return {
        "main": sessions(rows, "totals", aggregates={"total": hw.sum("v")}, **settings),
        "rows": sessions(rows, "rows", **settings),
    }


PROGRAMS: dict[str, Program] = {"session": session, "session_processing_time": session_processing_time}
