"""The programs of transcripts about regular and temporal joins."""

from __future__ import annotations

from functools import partial

from headwater import OutputTag
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


def regular_join(left: Stream, right: Stream, how: str, ttl: str | None = None) -> dict[str, Stream]:
    return {"main": read(left).key_by("k").join_regular(read(right).key_by("k"), how=how, ttl=ttl)}


def read(stream: Stream) -> Stream:
    """The stream, as a changelog if it says what rows do."""
    return stream.as_changelog() if "row_kind" in stream.schema.names else stream


def join_of_joins(orders: Stream, users: Stream, countries: Stream) -> dict[str, Stream]:
    homes = read(orders).key_by("user").join_regular(read(users).key_by("user"), how="left", name="homes")
    taxed = homes.key_by("country").join_regular(read(countries).key_by("country"), how="left", name="taxed")
    return {"main": taxed}


LATE = OutputTag("late", "k string, v bigint")


def temporal_join(rows: Stream, versions: Stream, how: str, ttl: str | None = None) -> dict[str, Stream]:
    step = rows.key_by("k").temporal_join(read(versions).key_by("k"), how=how, late=LATE, ttl=ttl)
    return {"main": step, "late": step.side_output(LATE)}


PROGRAMS: dict[str, Program] = {
    "regular_join_inner": partial(regular_join, how="inner"),
    "regular_join_left": partial(regular_join, how="left"),
    "regular_join_right": partial(regular_join, how="right"),
    "regular_join_full": partial(regular_join, how="full"),
    "regular_join_ttl": partial(regular_join, how="left", ttl="10 ms"),
    "join_of_joins": join_of_joins,
    "temporal_join_inner": partial(temporal_join, how="inner"),
    "temporal_join_left": partial(temporal_join, how="left"),
    "temporal_join_ttl": partial(temporal_join, how="left", ttl="10 ms"),
}
