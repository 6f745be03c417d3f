"""Programs of the transcripts of event time that is set in the middle of a job."""

from __future__ import annotations

from tests.transcripts.window_programs import LATE, in_ms

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


def assigned(stream: Stream) -> dict[str, Stream]:
    """Windows by another time than that of the source, beside windows by that; and by both in one step."""
    timed = stream.assign_watermarks(hw.Watermarks.bounded("t", "2 ms"))
    tens = hw.tumbling("10 ms")
    main = timed.select("k", "n").key_by("k").window(tens).late_to(LATE).agg(n=hw.sum("n")).with_uid("main")
    own = stream.key_by("k").window(tens).agg(n=hw.sum("n")).with_uid("own")
    both = timed.union(stream).key_by("k").window(tens).agg(n=hw.count()).with_uid("both")
    steps = {"main": main, "late": main.side_output(LATE), "own": own, "both": both}
    return {name: in_ms(step) for name, step in steps.items()}


PROGRAMS: dict[str, Program] = {"times.assigned": assigned}
