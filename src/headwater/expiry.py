"""How long state is kept: what `ttl=` takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import pyarrow as pa

from headwater.durations import Duration, duration_ms, duration_text
from headwater.errors import GraphError
from headwater.words import TimeDomain, TtlUpdate

WRITTEN = {"processing": pa.field("@processing_ms", pa.int64()), "event": pa.field("@event_ms", pa.int64())}
"""By clock, the column of a state that says when what is in a row was last written, or read if that counts."""


@dataclass(frozen=True)
class Ttl:
    """For how long state is there, from when, and by which clock."""

    ms: int
    update: TtlUpdate = "write"
    clock: TimeDomain = "processing"

    @property
    def column(self) -> tuple[str, pa.DataType]:
        """The column that holds the times."""
        return WRITTEN[self.clock].name, WRITTEN[self.clock].type

    @property
    def counts_reads(self) -> bool:
        """Whether reading makes it last longer."""
        return self.update == "read_and_write"

    def describe(self) -> str:
        """In words, after which state is gone."""
        since = "read or written" if self.counts_reads else "written"
        return f"{duration_text(self.ms)} of {self.clock} time after it was last {since}"


def ttl(duration: Duration, *, update: TtlUpdate = "write", clock: TimeDomain = "processing") -> Ttl:
    """For how long state is there: `ValueState("double", ttl=ttl("1 h"))`. What has expired is never seen again.

    It lasts from the last write, or with `update="read_and_write"` from the last time it was read or written. Lists and
    maps expire element by element. The clock is that of the epoch, or with `clock="event"` the step's watermark.
    """
    ttl_ms = duration_ms(duration, what="a ttl")
    if ttl_ms == 0:
        raise GraphError.bad_argument("ttl", "needs more than nothing", duration, "leave ttl= out for ever")
    if update not in get_args(TtlUpdate):
        known = " or ".join(map(repr, get_args(TtlUpdate)))
        raise GraphError.bad_argument("ttl", f"lasts from the last update={known}", update, "choose one of them")
    if clock not in get_args(TimeDomain):
        known = " or ".join(map(repr, get_args(TimeDomain)))
        raise GraphError.bad_argument("ttl", f"goes by clock={known}", clock, "choose one of them")
    return Ttl(ttl_ms, update, clock)


def checked(given: Any, state: str) -> Ttl | None:
    """What a state was given as its ttl, if that is one."""
    if given is not None and not isinstance(given, Ttl):
        raise GraphError.bad_argument(f"state {state}".strip(), "takes a hw.ttl(...)", given, "write ttl=hw.ttl('1 h')")
    return given
