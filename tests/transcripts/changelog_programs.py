"""The programs of transcripts about changelogs."""

from __future__ import annotations

from tests.transcripts.window_programs import in_ms

import headwater as hw
from headwater.graph.nodes import DistinctNode, KeepLastNode, RunningNode, TopNNode
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


def upserts(prices: Stream) -> dict[str, Stream]:
    """Who reads a filter must know what goes, so the changelog by key is completed before it."""
    as_they_come = prices.as_changelog(key="id").with_uid("as_they_come").select("id", "v * 2 as twice")
    return {"main": prices.as_changelog(key="id").with_uid("prices").where("v > 0"), "as_they_come": as_they_come}


def totals(orders: Stream) -> dict[str, Stream]:
    """Totals of a changelog, and how many users have each number of orders: the totals are taken back, too."""
    by_user = orders.as_changelog().key_by("k").agg(n=hw.count(), total=hw.sum("v"), top=hw.max("v"))
    by_count = by_user.with_uid("by_user").key_by("n").agg(users=hw.count(), total=hw.sum("total"))
    return {"main": by_count.with_uid("by_count").where("users > 0"), "users": by_user}


def windows(orders: Stream) -> dict[str, Stream]:
    """Windows that fire once have the rows that are left; early firings take back what they said."""
    tens = orders.as_changelog().key_by("k").window(hw.tumbling("10 ms"))
    early = tens.trigger(hw.triggers.continuous("5 ms")).panes("retracting")
    return {
        "main": in_ms(tens.agg(n=hw.count(), top=hw.max("v")).with_uid("once")),
        "early": in_ms(early.agg(n=hw.count()).with_uid("early")),
    }


def groups(rows: Stream) -> dict[str, Stream]:
    """The groups of rows that are only added, and all as one group."""
    some = {"n": hw.count(), "first": hw.first_value("v"), "last": hw.last_value("v")}
    totals = {"n": hw.count(), "total": hw.sum("v")}
    return {
        "main": rows._add(RunningNode.of(rows.key_by("k")._flow, aggregates=some, updates=True)),
        "together": rows._add(RunningNode.of(rows._flow, aggregates=totals, updates=True, name="together")),
    }


def groups_that_go(rows: Stream) -> dict[str, Stream]:
    """Which keys of a changelog there are, and all rows as one group."""
    changes = rows.as_changelog()
    least = {"n": hw.count(), "least": hw.min("v")}
    return {
        "main": changes._add(RunningNode.of(changes.key_by("k")._flow, aggregates={}, updates=True)),
        "together": changes._add(RunningNode.of(changes._flow, aggregates=least, updates=True, name="together")),
    }


def idle_keys(rows: Stream) -> dict[str, Stream]:
    """Steps that forget keys and rows in processing time."""
    totals, ttl = {"n": hw.count(), "total": hw.sum("v")}, "10 ms"
    keyed = rows.key_by("k")._flow
    return {
        "main": rows._add(RunningNode.of(keyed, aggregates=totals, updates=True, ttl=ttl)),
        "last": rows._add(KeepLastNode.of(rows._flow, by="k", ttl=ttl)),
        "top": rows._add(TopNNode.of(keyed, n=1, by="v", ttl=ttl)),
        "idle": rows._add(DistinctNode.of(rows._flow, by="k", ttl=ttl, name="idle")),
        "once": rows._add(DistinctNode.of(rows._flow, by="k", ttl=ttl, since_first=True, name="once")),
        "ever": rows._add(DistinctNode.of(rows._flow, by="k", name="ever")),
    }


PROGRAMS: dict[str, Program] = {
    "idle_keys": idle_keys,
    "changelog_groups": groups,
    "changelog_groups_that_go": groups_that_go,
    "changelog_upserts": upserts,
    "changelog_totals": totals,
    "changelog_windows": windows,
}
