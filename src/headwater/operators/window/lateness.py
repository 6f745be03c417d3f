"""Which rows of sessions are late: those that, when they come, touch nothing that is still open."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from headwater.data.batch import Timestamps
from headwater.operators.grouping import Codes
from headwater.operators.window.stretches import Stretches

_NEVER = np.iinfo(np.int64).max


def in_time(
    starts: Timestamps, gap_ms: int, codes: Codes, gone: npt.NDArray[np.bool_], sessions: Stretches
) -> npt.NDArray[np.bool_]:
    """Which rows go into a session, row by row as they come, whose own stretch of time may be gone.

    `sessions` are open, and come by keys and then by time. A row that is gone itself goes into a session that it touches,
    be it for a row that came before it in the same batch. Each round is over all rows that are left, and there are as many
    as such rows hang on each other.
    """
    alive = ~gone
    asking = np.flatnonzero(gone)
    known = np.unique(np.concatenate([starts, starts + gap_ms, sessions.starts]))
    size = len(known) + 1

    def numbers(of: Codes, times: Timestamps) -> Codes:
        """Key and time in one word, in the order of both."""
        found: Codes = of * size + np.searchsorted(known, times)
        return found

    until = numbers(codes[asking], starts[asking] + gap_ms)
    if len(sessions):
        last = np.searchsorted(numbers(sessions.keys, sessions.starts), until, side="right") - 1
        touches = (sessions.keys[last] == codes[asking]) & (sessions.ends[last] >= starts[asking]) & (last >= 0)
        alive[asking[touches]] = True
        asking, until = asking[~touches], until[~touches]
    order = np.lexsort((starts, codes))
    words = numbers(codes, starts)[order]
    begin = np.searchsorted(words, numbers(codes[asking], starts[asking] - gap_ms))
    end = np.searchsorted(words, until, side="right")
    while len(asking):
        came = _lowest(np.where(alive[order], order, _NEVER), begin, end)
        joins = came < asking
        if not joins.any():
            break
        alive[asking[joins]] = True
        asking, begin, end = asking[~joins], begin[~joins], end[~joins]
    return alive


def _lowest(values: Codes, begin: Codes, end: Codes) -> Codes:
    """The lowest value of each range, none of which is empty: that of two blocks of a power of two which cover it."""
    found = np.full(len(begin), _NEVER)
    exponent = np.frexp(end - begin)[1] - 1
    size = 1
    for power in range(int(exponent.max(initial=-1)) + 1):
        if power:
            values = np.minimum(values[:-size], values[size:])
            size *= 2
        here = exponent == power
        found[here] = np.minimum(values[begin[here]], values[end[here] - size])
    return found
