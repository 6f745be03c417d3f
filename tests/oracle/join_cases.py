"""Random joins of two streams and their input.

A case is, beside what cases.py says of all cases, one of

    {"kind": "interval", "lower": -5, "upper": 10, "lower_inclusive": true, "upper_inclusive": false, "late": true}
    {"kind": "window_join", "window": ..., "trigger": ..., "evictor": ..., "lateness": 5}   # as in window_cases.py
    {"kind": "cogroup", ...}                                                                # the same
    {"kind": "regular", "how": "full", "changelogs": ["left"], "ttl": null}                 # inner, left, right or full
    {"kind": "temporal", "how": "left", "changelogs": ["right"]}                            # inner or left

where `late` says whether late rows go to side outputs, and `changelogs` names the inputs whose rows have a row kind.
A regular join deletes only rows that are there, and updates by a pair of -U and +U. A temporal join has versions on
the right, each from its timestamp on.

Actions are rows `["left", key, value, timestamp]` and `["right", ...]`, with the row kind as one more item if the input
is a changelog; `["watermark", t]` of both inputs, `["watermark_left", t]` and `["watermark_right", t]`;
`["idle_left"]` and `["idle_right"]`, until the next row or watermark of that input; `["end"]` of both inputs,
`["end_left"]` and `["end_right"]`; and `["clock", t]`. The keys of regular joins may be null.

Each of the rows in `fired` is, after the step,

    interval, window_join   key, left value, right value, timestamp
    cogroup                 key, left values, right values, timestamp
    regular                 row kind, key, left value or null, right value or null
    temporal                key, left value, right value or null, timestamp of the left row

and of those in `late`: side, key, value, timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from window_cases import make_evictor, make_trigger, make_window, near_window

Case = dict[str, Any]
Action = list[Any]

FEW_KEYS = ("a", "b", "c")
LOWEST, HIGHEST = -(2**63), 2**63 - 1
MANY_KEYS = tuple(f"k{number}" for number in range(20))


def interval(random: Random) -> Case:
    scale = random.choice((1, 1, 1, 1000))
    lower, upper = sorted(scale * random.randint(-10, 10) for _ in range(2))
    lower, upper = random.choice(((lower, upper), (lower, upper), (-upper, upper), (lower, lower), (0, 0)))
    lower, upper = min(lower, upper), max(lower, upper)
    is_point = upper - lower < 2  # with an exclusive bound there may be nothing between them
    streams = Streams(random, scale, offsets=(lower, upper, -lower, -upper))
    return {
        "lower": lower,
        "upper": upper,
        "lower_inclusive": is_point or random.random() < 0.6,
        "upper_inclusive": is_point or random.random() < 0.6,
        "late": random.random() < 0.7,
        "actions": list(streams.actions(streams.inserts)),
    }


def window_join(random: Random) -> Case:
    scale = random.choice((1, 1, 1, 1000))
    kind = random.choice(("tumbling", "tumbling", "sliding", "sliding", "session", "session", "global"))
    window = make_window(random, kind, scale)
    evictor = make_evictor(random, "session", scale) if random.random() < 0.2 else None
    if kind == "session" and evictor and evictor["kind"] == "count":
        evictor = None  # which rows come first in a merged session is not defined, so neither is which are evicted
    trigger = make_trigger(random, window, scale, deltas=False)
    case = {
        "window": window,
        "trigger": trigger,
        "evictor": evictor,
        "lateness": 0 if kind == "global" or "clock" in window else scale * random.choice((0, 0, 1, 3, 10)),
    }
    of_trigger = trigger["kind"] if trigger else ""
    streams = Streams(
        random,
        scale,
        near=lambda now: near_window(random, case, now, scale),
        clocked="clock" in window or of_trigger == "continuous_processing_time",
        endless=kind == "global" and of_trigger == "continuous",
    )
    return case | {"actions": list(streams.actions(streams.inserts))}


cogroup = window_join


def regular(random: Random) -> Case:
    changelogs = random.choice(([], ["left"], ["right"], ["left", "right"], ["left", "right"]))
    how = random.choice(("inner", "left", "right", "full"))
    ttl = random.choice((None, None, None, random.randint(1, 20)))
    streams = Streams(random, 1, clocked=ttl is not None, null_keys=random.random() < 0.1)
    live: dict[str, list[tuple[str | None, int]]] = {"left": [], "right": []}

    def changes(side: str) -> Iterator[Action]:
        if side not in changelogs or not live[side] or random.random() < 0.5:
            row = (random.choice(streams.keys), random.randint(0, 3))
            live[side].append(row)
            yield [side, *row, streams.near(), "+I"] if side in changelogs else [side, *row, streams.near()]
            return
        old = live[side].pop(random.randrange(len(live[side])))
        if random.random() < 0.5:
            yield [side, *old, streams.near(), "-D"]
            return
        new = (random.choice((old[0], old[0], random.choice(streams.keys))), random.randint(0, 3))
        live[side].append(new)
        yield [side, *old, streams.near(), "-U"]
        yield [side, *new, streams.near(), "+U"]

    actions = list(streams.actions(changes))
    if ttl and _differs_by_ttl(how, ttl, actions):
        ttl = None
    return {"how": how, "changelogs": changelogs, "ttl": ttl, "actions": actions}


def _differs_by_ttl(how: str, ttl: int, actions: list[Action]) -> bool:
    """Whether a row lives on in Flink, as one of an outer side that is met and one that equals a new one do.

    Also whether a row is deleted that has expired, which is not there any more, or one of an outer side after all that it met
    have: Flink deletes its padded row then, which was never there.
    """
    outer = {"inner": "", "left": "left", "right": "right", "full": "left, right"}[how]
    live: list[tuple[str, str | None, int, int]] = []
    lost: set[tuple[str, str | None]] = set()
    """Sides and keys whose rows may have met one that has expired."""
    now = 0
    for name, *arguments in actions:
        if name == "clock":
            now = arguments[0]
            lost |= {({"left": "right", "right": "left"}[row[0]], row[1]) for row in live if row[3] + ttl <= now}
            live = [row for row in live if row[3] + ttl > now]
        elif name in ("left", "right"):
            key, value, _, *kind = arguments
            equal = [row for row in live if row[:3] == (name, key, value)]
            if kind in (["-U"], ["-D"]):
                if not equal:
                    return True
                live.remove(equal.pop(0))
                is_alone = not any(row[0] != name and row[1] == key for row in live)
                if is_alone and name in outer and (name, key) in lost:
                    return True
            met = [row for row in live if row[0] != name and row[0] in outer and row[1] == key]
            if any(row[3] < now for row in equal + met):
                return True
            if kind not in (["-U"], ["-D"]):
                live.append((name, key, value, now))
    return False


def temporal(random: Random) -> Case:
    changelogs = random.choice(([], ["right"]))
    streams = Streams(random, random.choice((1, 1, 1, 1000)), offsets=(0,))
    late = random.random() < 0.5

    def changes(side: str) -> Iterator[Action]:
        for action in streams.inserts(side):
            if side == "left":
                if late or action[3] > streams.watermark:
                    yield action
            elif not changelogs:
                yield action
            else:
                kind = random.choice(("+I", "+U", "-U", "-D"))
                yield [*action, kind]
                if kind == "-U":  # the old row of an update, at the time of the update
                    yield [*action[:2], random.randint(-5, 20), action[3], "+U"]

    actions = list(streams.actions(changes))
    return {"how": random.choice(("inner", "left")), "changelogs": changelogs, "actions": actions}


def watermarks_before(case: Case) -> Iterator[int]:
    """The watermark of an operator with two inputs before each action."""
    marks = Marks()
    for action in case["actions"]:
        yield marks.watermark
        marks.take(action)


class Marks:
    """The watermarks of two inputs, and of their operator: the smallest of those that are not idle, never going back."""

    def __init__(self) -> None:
        self.of = {"left": LOWEST, "right": LOWEST}
        self.idle: set[str] = set()
        self.watermark = LOWEST

    def take(self, action: Action) -> None:
        name, _, side = action[0].partition("_")
        if name == "idle":
            self.idle.add(side)
        elif name in ("watermark", "end"):
            self.of |= dict.fromkeys([side] if side else self.of, action[1] if name == "watermark" else HIGHEST)
            self.idle -= {side} if side else self.idle
        else:
            self.idle.discard(name)
        active = [mark for side, mark in self.of.items() if side not in self.idle]
        self.watermark = max(self.watermark, min(active) if active else max(self.of.values()))


class Streams:
    """Rows of two streams around a time that mostly moves on, and watermarks of each.

    One stream may be empty or idle for a while, or its watermark may stand still. Times come to lie on and beside those of
    earlier rows and watermarks, moved by one of `offsets`, or where `near` puts them.
    """

    def __init__(
        self,
        random: Random,
        scale: int,
        *,
        offsets: tuple[int, ...] = (0,),
        near: Callable[[int], int] | None = None,
        clocked: bool = False,
        endless: bool = False,
        null_keys: bool = False,
    ) -> None:
        self._random, self._scale, self._offsets, self._near = random, scale, offsets, near
        self._clocked, self._endless = clocked, endless
        self._now = scale * random.choice((0, 0, 0, -40, 1_000_000))
        self._times = [self._now]
        self._marks = Marks()
        keys = random.choice((FEW_KEYS[:1], FEW_KEYS[:1], FEW_KEYS[:2], FEW_KEYS[:2], FEW_KEYS, MANY_KEYS))
        self.keys: tuple[str | None, ...] = (*keys, None) if null_keys else keys

    @property
    def watermark(self) -> int:
        return self._marks.watermark

    def actions(self, change: Callable[[str], Iterator[Action]]) -> Iterator[Action]:
        """Rows that `change` makes for a side, watermarks, ticks of the clock, and mostly the end of both inputs."""
        for action in self._actions(change):
            self._marks.take(action)
            yield action

    def _actions(self, change: Callable[[str], Iterator[Action]]) -> Iterator[Action]:
        random = self._random
        sides = random.choice((*(["left", "right"],) * 8, ["left", "left", "left", "right"], ["left"], ["right"]))
        marked = random.choice((*(["both"],) * 4, *(["left", "right"],) * 4, ["left"], ["right"]))
        stays, side = random.choice((0, 0.8)), random.choice(sides)
        idles, ends = random.choice(((0, 0), (0, 0), (0, 0.05), (0.3, 0)))
        clock = 0
        for _ in range(random.randint(4, 30)):
            draw = random.random()
            if draw < 0.7:
                side = side if random.random() < stays else random.choice(sides)
                yield from change(side)
            elif self._clocked and draw < 0.85:
                clock += self._scale * random.choice((0, 1, 3, 7, 20))
                yield ["clock", clock]
            elif random.random() < idles:
                yield [f"idle_{random.choice(('left', 'right'))}"]
            else:
                yield from self._mark(random.choice(marked))
            if random.random() < ends:
                ended, side = random.choice((("left", "right"), ("right", "left")))
                yield [f"end_{ended}"]
                sides, marked, ends = [side], [side], 0
            self._now += self._scale * random.choice((0, 0, 1, 2, 5))
            if random.random() < 0.01 and not self._endless:
                self._now += self._scale * 10_000
        if random.random() < 0.7 and not self._endless:
            yield ["end"]

    def _mark(self, side: str) -> Iterator[Action]:
        behind = self._scale * self._random.choice((0, 0, 2, 5, 10))
        mark = self.near() - behind + self._random.choice((-1, 0, 0, 0, 1))
        sides = ("left", "right") if side == "both" else (side,)
        if all(mark > self._marks.of[each] for each in sides):
            self._times.append(mark)
            yield ["watermark", mark] if side == "both" else [f"watermark_{side}", mark]

    def inserts(self, side: str) -> Iterator[Action]:
        self._times.append(self.near())
        yield [side, self._random.choice(self.keys), self._random.randint(-5, 20), self._times[-1]]

    def near(self) -> int:
        random, scale = self._random, self._scale
        if self._near:
            return self._near(self._now)
        if random.random() < 0.5:
            return random.choice(self._times[-6:]) + random.choice(self._offsets) + random.choice((-1, 0, 0, 0, 1))
        return self._now + random.choice((scale * random.randint(-10, 5), random.randint(-10 * scale, 5 * scale)))
