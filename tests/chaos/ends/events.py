"""The input: orders of users, spread over partitions by user, a little out of order; and what must come of them."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

WINDOW_MS = 10_000
BOUND_MS = 2_000
"""How far an event may be behind one that comes before it."""
_STEP_MS = 5


@dataclass(frozen=True)
class Event:
    """One order."""

    user: str
    amount: int
    ts_ms: int

    def value(self) -> bytes:
        return json.dumps({"amount": self.amount, "ts": self.ts_ms}).encode()


@dataclass(frozen=True)
class Events:
    """As many as wanted, the same for the same seed."""

    count: int
    seed: int
    users: int = 1_000

    def __iter__(self) -> Iterator[Event]:
        chance = random.Random(self.seed)
        for number in range(self.count):
            late_ms = chance.randrange(BOUND_MS) if chance.random() < 0.2 else 0
            ts_ms = BOUND_MS + number * _STEP_MS - late_ms
            yield Event(f"user-{chance.randrange(self.users):04d}", chance.randrange(1, 1_000), ts_ms)

    @cached_property
    def totals(self) -> dict[str, list[tuple[int, int]]]:
        """By user, in order: how many orders there were and their sum, after each."""
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for event in self:
            n, total = found[event.user][-1] if found[event.user] else (0, 0)
            found[event.user].append((n + 1, total + event.amount))
        return dict(found)

    @cached_property
    def windows(self) -> dict[tuple[str, int], tuple[int, int]]:
        """By user and end of the window: how many orders there were in it and their sum."""
        counts: Counter[tuple[str, int]] = Counter()
        sums: Counter[tuple[str, int]] = Counter()
        for event in self:
            place = (event.user, event.ts_ms - event.ts_ms % WINDOW_MS + WINDOW_MS)
            counts[place] += 1
            sums[place] += event.amount
        return {place: (counts[place], sums[place]) for place in counts}
