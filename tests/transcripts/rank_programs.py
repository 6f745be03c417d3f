"""The programs of transcripts about rows that are chosen among those of a key, and of the rolling reduce."""

from __future__ import annotations

from typing import Any

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


PROGRAMS: dict[str, Program] = {
    "deduplicate": deduplicate,
    "deduplicate_pairs": pairs,
    "reduce": reduce,
    "top_n": top_n,
    "top_n_changelog": top_n_changelog,
}
