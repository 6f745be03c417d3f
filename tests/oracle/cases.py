"""Random cases of every kind, as plain data: the same seed gives the same cases.

A case is a dict that survives JSON. Every time and length in it is in milliseconds, but for count windows:

    {"id": "7-0", "kind": "interval", ..., "actions": [["left", "a", 3, 17], ["watermark", 20], ["end"]]}

`window_cases.py`, `join_cases.py` and `ttl_cases.py` say what the program of each kind is made of, and what its actions
are. Watermarks of an input rise; the clock never goes back.

What a case emits is {"fired": [[step, ...], ...], "late": [[step, ...], ...]}, where step is the index of the action
that led to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from join_cases import cogroup, interval, regular, temporal, window_join
from ttl_cases import ttl
from window_cases import windows

Case = dict[str, Any]

KINDS: dict[str, Callable[[Random], Case]] = {
    "windows": windows,
    "interval": interval,
    "window_join": window_join,
    "cogroup": cogroup,
    "regular": regular,
    "temporal": temporal,
    "ttl": ttl,
}


def make_cases(kind: str, count: int, seed: int) -> Iterator[Case]:
    """`count` cases; each depends on the kind, the seed and its own number only."""
    for number in range(count):
        yield {"id": f"{seed}-{number}", "kind": kind} | KINDS[kind](Random(f"{seed}/{number}"))
