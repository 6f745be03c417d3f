"""Random windowed programs and their input.

A case is, beside what cases.py says of all cases:

    {"window": {"kind": "sliding", "size": 10, "slide": 4, "offset": -3},  # "clock": true for processing time
     "trigger": {"kind": "count", "n": 2, "purging": true},     # null: the window's own
     "evictor": {"kind": "time", "size": 5, "after": false},    # null: none
     "lateness": 5, "late": true,                               # late: whether late rows go to a side output
     "function": "sum",                                         # sum, count, min, max, or list: all values in order
     "actions": [["row", "a", 3, 17], ["watermark", 20], ["clock", 30], ["end"]]}

What it emits is {"fired": [[step, key, start, end, values, timestamp], ...], "late": [[step, key, value, timestamp],
...]}.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Case = dict[str, Any]

FUNCTIONS = ("sum", "count", "min", "max", "list")
KEYS = ("a", "b", "c")


def windows(random: Random) -> Case:
    kind = random.choice(("tumbling", "tumbling", "sliding", "sliding", "session", "session", "count", "global"))
    timed = kind in {"tumbling", "sliding", "session"}
    scale = random.choice((1, 1, 1, 1000))
    window = make_window(random, kind, scale)
    timed = timed and "clock" not in window
    trigger = make_trigger(random, window, scale)
    evictor = make_evictor(random, kind, scale) if kind != "count" and random.random() < 0.3 else None
    lateness = scale * random.choice((0, 0, 1, 3, 10, 25)) if timed else 0
    function = random.choice(FUNCTIONS)
    if kind == "session" and evictor and evictor["kind"] == "count":
        function = "count"  # which rows come first in a merged session is not defined, so neither is which are evicted
    case = {
        "window": window,
        "trigger": trigger,
        "evictor": evictor,
        "lateness": lateness,
        "late": timed and random.random() < 0.7,
        "function": function,
    }
    return case | {"actions": list(_actions(random, case, scale))}


def make_window(random: Random, kind: str, scale: int) -> dict[str, Any]:
    window = _WINDOWS[kind](random, scale)
    if kind in {"tumbling", "sliding", "session"} and random.random() < 0.1:
        window["clock"] = True
    return window


def _tumbling(random: Random, scale: int) -> dict[str, Any]:
    size = scale * random.randint(1, 12)
    return {"kind": "tumbling", "size": size, "offset": _offset(random, size)}


def _sliding(random: Random, scale: int) -> dict[str, Any]:
    size, slide = scale * random.randint(1, 15), scale * random.randint(1, 10)
    return {"kind": "sliding", "size": size, "slide": slide, "offset": _offset(random, slide)}


def _offset(random: Random, below: int) -> int:
    return random.choice((0, 0, random.randint(1 - below, below - 1)))


def _count(random: Random, scale: int) -> dict[str, Any]:
    size = random.randint(1, 5)
    return {"kind": "count", "size": size} | random.choice(({}, {"slide": random.randint(1, 6)}))


_WINDOWS: dict[str, Callable[[Random, int], dict[str, Any]]] = {
    "tumbling": _tumbling,
    "sliding": _sliding,
    "session": lambda random, scale: {"kind": "session", "gap": scale * random.randint(1, 8)},
    "count": _count,
    "global": lambda random, scale: {"kind": "global"},
}


def make_trigger(random: Random, window: dict[str, Any], scale: int, deltas: bool = True) -> dict[str, Any] | None:
    kind, clocked = window["kind"], window.get("clock", False)
    if kind == "count" or (kind != "global" and random.random() < 0.35):
        return None
    interval = scale * random.randint(1, 8)
    triggers: list[dict[str, Any]] = [
        {"kind": "count", "n": random.randint(1, 4)},
        {"kind": "continuous", "interval": interval},
        {"kind": "continuous_processing_time", "interval": interval},
    ]
    if kind != "global":  # Flink's triggers for a window's end take time windows only
        triggers.append({"kind": "processing_time" if clocked else "event_time"})
    if deltas and kind != "session":  # two last rows cannot be merged into one
        triggers.append({"kind": "delta", "threshold": random.randint(0, 5)})
    return random.choice(triggers) | {"purging": random.random() < 0.4}


def make_evictor(random: Random, kind: str, scale: int) -> dict[str, Any]:
    evictors: list[dict[str, Any]] = [
        {"kind": "count", "n": random.randint(1, 3)},
        {"kind": "time", "size": scale * random.randint(1, 10)},
    ]
    if kind != "session":  # which row of a merged session is the last is not defined
        evictors.append({"kind": "delta", "threshold": random.randint(1, 8)})
    return random.choice(evictors) | {"after": random.random() < 0.3}


def _actions(random: Random, case: Case, scale: int) -> Iterator[list[Any]]:
    """Rows around a time that mostly moves on, and watermarks behind it, in front of it and exactly on the edges."""
    window, trigger = case["window"], case["trigger"] or {}
    keys = KEYS[: random.randint(1, 3)]
    clocked = "clock" in window or trigger.get("kind") == "continuous_processing_time"
    # A continuous trigger on a global window fires for every interval up to the watermark, and so without end.
    endless = window["kind"] == "global" and trigger.get("kind") == "continuous"
    now, watermark, clock = scale * random.choice((0, 0, 0, -40, 1_000_000)), None, 0
    for _ in range(random.randint(3, 24)):
        draw = random.random()
        if draw < 0.65:
            yield ["row", random.choice(keys), random.randint(-5, 20), near_window(random, case, now, scale)]
        elif clocked and draw < 0.8:
            clock += scale * random.choice((0, 1, 3, 7, 20))
            yield ["clock", clock]
        else:
            mark = near_window(random, case, now, scale) + random.choice((-1, -1, 0, 1)) * random.choice(
                (0, 1, case["lateness"])
            )
            if watermark is None or mark > watermark:
                watermark = mark
                yield ["watermark", watermark]
        now += scale * random.choice((0, 0, 1, 2, 5))
        if random.random() < 0.03 and not endless:
            now += scale * 10_000
    if random.random() < 0.7 and not endless:
        yield ["end"]


def near_window(random: Random, case: Case, now: int, scale: int) -> int:
    """A time not far from `now`: on or beside an edge, some whole units away, or any millisecond around."""
    window = case["window"]
    step = window.get("slide", window.get("size", window.get("gap", 5)))
    draw = random.random()
    if draw < 0.4 and window["kind"] != "count":
        edge = (now // step) * step + window.get("offset", 0)
        return (
            edge
            + step * random.randint(-2, 2)
            + random.choice((0, window.get("size", 0)))
            + random.choice((-1, 0, 0, 1))
        )
    if draw < 0.8:
        return now + scale * random.randint(-10, 5)
    return now + random.randint(-10 * scale, 5 * scale)
