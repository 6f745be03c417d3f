"""The programs of transcripts about rows that are chosen among those of a key, and of the rolling reduce."""

from __future__ import annotations

from typing import Any

from headwater.graph.nodes import KeepFirstNode, KeepLastNode, Node, TopNNode, WindowTopNNode
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


def deduplicate(rows: Stream) -> dict[str, Stream]:
    """The first row of a key for ever, and for ten milliseconds."""
    ever = rows.deduplicate("k", name="ever")
    return {"main": rows.deduplicate("k", ttl="10 ms", name="for_ten"), "ever": ever}


def pairs(rows: Stream) -> dict[str, Stream]:
    """The first row of each pair of values; a null is a value like others."""
    return {"main": rows.deduplicate(["k", "n"])}


def together(so_far: Any, row: Any) -> dict[str, Any]:
    return {"k": row.k, "n": so_far.n + row.n, "seen": [*so_far.seen, *row.seen]}


def reduce(rows: Stream) -> dict[str, Stream]:
    """Numbers are added, and lists put one behind the other."""
    return {"main": rows.key_by("k").reduce(together)}


def top_n(rows: Stream) -> dict[str, Stream]:
    """How the two largest change, for one who must know what goes; and by key and rank, the two largest and the two least."""
    by_shop = rows.key_by("k")
    return {
        "main": by_shop.top_n(2, by="v", name="large").where("v > 5"),
        "largest": by_shop.top_n(2, by="v", name="largest"),
        "least": by_shop.top_n(2, by=["v", "id"], descending=[False, True], name="least").drop("id"),
    }


def top_n_changelog(rows: Stream) -> dict[str, Stream]:
    """The two largest of a table that changes."""
    changes = rows.as_changelog().key_by("k")
    return {
        "main": changes.top_n(2, by="v", name="large").where("v > 3"),
        "largest": changes.top_n(2, by="v", name="largest"),
    }


def added(rows: Stream, node: Node) -> Stream:
    """For steps that have no handle on streams of their own."""
    return rows._add(node)


def top_n_places(rows: Stream) -> dict[str, Stream]:
    """The two least rows of all; the least of each key, and the second and third of all, nulls last."""
    flow = rows._flow
    least: dict[str, Any] = {"by": "v", "descending": False, "nulls_first": False}
    return {
        "main": added(rows, TopNNode.of(flow, n=2, partition_by=(), rank=None, name="two", **least)),
        "best": added(rows, TopNNode.of(flow, n=1, partition_by=["k"], rank=None, name="one", **least)),
        "behind": added(rows, TopNNode.of(flow, n=3, first=2, partition_by=(), rank="place", name="behind", **least)),
    }


def top_n_rows_of_changelog(rows: Stream) -> dict[str, Stream]:
    """The two largest of a table that changes, without their ranks."""
    changes = rows.as_changelog()
    return {"main": added(changes, TopNNode.of(changes._flow, n=2, by="v", partition_by=["k"], rank=None))}


def window_top_n(rows: Stream) -> dict[str, Stream]:
    """The two largest of a window, and the second row of each key, in order of arrival."""
    two = WindowTopNNode.of(rows._flow, window_end="until", n=2, by="v", name="two")
    second = WindowTopNNode.of(
        rows._flow, window_end="until", n=2, first=2, by="k", partition_by=["until", "k"], rank=None, name="second"
    )
    return {"main": added(rows, two), "second": added(rows, second)}


def keep_first(rows: Stream) -> dict[str, Stream]:
    return {"main": added(rows, KeepFirstNode.of(rows._flow, by="k"))}


def keep_last(rows: Stream) -> dict[str, Stream]:
    """By key, and for one who must know what goes."""
    whole = added(rows, KeepLastNode.of(rows._flow, by="k", name="whole")).where("n > 0")
    return {"main": added(rows, KeepLastNode.of(rows._flow, by="k")), "whole": whole}


PROGRAMS: dict[str, Program] = {
    "keep_first": keep_first,
    "keep_last": keep_last,
    "top_n_places": top_n_places,
    "top_n_rows_of_changelog": top_n_rows_of_changelog,
    "window_top_n": window_top_n,
    "deduplicate": deduplicate,
    "deduplicate_pairs": pairs,
    "reduce": reduce,
    "top_n": top_n,
    "top_n_changelog": top_n_changelog,
}
