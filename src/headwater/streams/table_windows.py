"""Windows of streams as the window table functions of SQL."""

from __future__ import annotations

from collections.abc import Sequence

from headwater.sql.errors import SqlError
from headwater.sql.statements.shown import name_text
from headwater.windows.assigners import Cumulate, Session, Sliding, Tumbling, WindowAssigner


def window_call(windows: WindowAssigner, on: str, by: Sequence[str]) -> str:
    """The call that gives the same windows over the table `this`."""
    time = f"DESCRIPTOR({name_text(on)})"
    if type(windows) is Session and windows.gap_ms is not None:
        parts = f" PARTITION BY ({', '.join(map(name_text, by))})" if by else ""
        return f"SESSION(TABLE this{parts}, {time}, {_interval(windows.gap_ms)})"
    if by:
        raise SqlError.bad_argument("window", "takes `by` for sessions", by, "group by the columns instead")
    if type(windows) is Tumbling:
        sizes, name = [windows.size_ms], "TUMBLE"
    elif type(windows) is Sliding:
        sizes, name = [windows.slide_ms, windows.size_ms], "HOP"
    elif type(windows) is Cumulate:
        sizes, name = [windows.slice_ms, windows.size_ms], "CUMULATE"
    else:
        raise SqlError.bad_argument(
            "window",
            "takes tumbling, sliding, cumulate and session windows",
            windows,
            "for processing time use a PROCTIME() column in on=; for others use streams",
        )
    sizes += [windows.offset_ms] if windows.offset_ms else []
    return f"{name}(TABLE this, {time}, {', '.join(map(_interval, sizes))})"


def _interval(ms: int) -> str:
    return f"INTERVAL '{ms // 1000}.{ms % 1000:03d}' SECOND"
