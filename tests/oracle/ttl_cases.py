"""Random programs over keyed state with a ttl.

    {"state": "map", "update": "write", "ttl": 10, "actions": [["row", key, number, 0, what, entry], ["clock", 9], ...]}

A row does one thing to the state of its key: what it is, to which entry of a map, with which number.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

READS = {
    "value": ["get"],
    "list": ["get"],
    "map": ["get", "contains", "keys", "values", "items"],
    "reducing": ["get"],
    "aggregating": ["get"],
}
WRITES = {
    "value": ["set"],
    "list": ["add", "add_all", "update"],
    "map": ["put", "put", "put_all", "remove"],
    "reducing": ["add"],
    "aggregating": ["add"],
}
_ENTRIES = "xyz"


def ttl(random: Random) -> dict[str, Any]:
    """Reads and writes around the times at which something expires."""
    state = random.choice(list(READS))
    millis = random.choice((1, 2, 10, 1000)) * random.randint(1, 7)
    return {
        "state": state,
        "update": random.choice(("write", "read_and_write")),
        "ttl": millis,
        "actions": list(_actions(random, state, millis)),
    }


def _actions(random: Random, state: str, millis: int) -> Iterator[list[Any]]:
    keys = random.choice(("a", "a", "ab"))
    clock = random.choice((0, 0, 5, 1_000_000))
    touched = [clock]
    if clock:
        yield ["clock", clock]
    for _ in range(random.randint(8, 60)):
        draw = random.random()
        if draw < 0.3:
            clock = _later(random, clock, touched, millis)
            yield ["clock", clock]
            continue
        touched.append(clock)
        what = random.choice(READS[state]) if draw < 0.65 else random.choice(WRITES[state])
        if draw > 0.97:
            what = "clear"
        yield ["row", random.choice(keys), random.randint(-5, 20), 0, what, random.choice(_ENTRIES)]


def _later(random: Random, clock: int, touched: list[int], millis: int) -> int:
    """A little later, or just about when something expires that was read or written."""
    if random.random() < 0.4:
        return clock + random.choice((0, 1, millis // 3, millis // 2))
    return max(clock, random.choice(touched[-6:]) + millis + random.choice((-1, 0, 0, 1)))
