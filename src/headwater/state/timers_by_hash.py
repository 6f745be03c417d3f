"""Timers in memory by the hashes of their keys, so that a slice of them costs what is in it and not what there is."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

import numpy as np

from headwater.state.slices import MAX_PARTS, Slice, first_bytes
from headwater.state.table import CHUNK_ROWS, KeyedLayout

_Timer = tuple[int, Any]
"""A time and a key."""
_FEW = 64
"""So many timers of a byte need no tidying."""


class TimersByHash:
    """A list for each first byte of a hash.

    It is told of timers that are set and not of those that go: each list is tidied when it has doubled. So no call passes
    more than a chunk of new timers and a 256th of all.
    """

    def __init__(self, layout: KeyedLayout) -> None:
        self._layout = layout
        self._new: list[_Timer] = []
        """Those that were not hashed yet."""
        self._lists: list[list[_Timer]] = [[] for _ in range(MAX_PARTS)]
        self._tidy_from = [_FEW] * MAX_PARTS

    def add(self, timer: _Timer, there: Container[_Timer]) -> None:
        """A timer was set, which may be known; `there` are all that are set."""
        self._new.append(timer)
        if len(self._new) == CHUNK_ROWS:
            self._place(there)

    def within(self, part: Slice, there: Container[_Timer]) -> Iterator[_Timer]:
        """The timers that are there and fall into a slice, each once."""
        self._place(there)
        for byte in part.bytes():
            self._tidy(byte, there)
            yield from self._lists[byte]

    def _place(self, there: Container[_Timer]) -> None:
        new, self._new = self._new, []
        if not new:
            return
        firsts = first_bytes(self._layout.key_column([key for _, key in new]))
        order = np.argsort(firsts, kind="stable")
        found, starts = np.unique(firsts[order], return_index=True)
        for byte, places in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            self._lists[byte] += [new[place] for place in places.tolist()]
            if len(self._lists[byte]) > self._tidy_from[byte]:
                self._tidy(byte, there)

    def _tidy(self, byte: int, there: Container[_Timer]) -> None:
        """Let those go that are gone, or named twice since they were set again."""
        kept = [timer for timer in dict.fromkeys(self._lists[byte]) if timer in there]
        self._lists[byte], self._tidy_from[byte] = kept, 2 * len(kept) + _FEW
