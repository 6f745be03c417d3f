"""What is in memory by the hashes of keys, so that a slice of it costs what is in it and not what there is."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.state.slices import MAX_PARTS, Slice, first_bytes
from headwater.state.table import CHUNK_ROWS

Item = TypeVar("Item", bound=Hashable)
Places = npt.NDArray[np.int64]
Encode = Callable[[Sequence[Any]], pa.Array]
"""Gives the keys of items as a column."""
_FEW = 64
"""So many items of a byte need no tidying, and so many places that other keys have got no hashing anew."""


class ItemsByHash(Generic[Item]):
    """A list for each first byte of a hash.

    It is told of items that come and not of those that go: each list is tidied when it has doubled. So no call passes more
    than a chunk of new items and a 256th of all, as long as whoever adds many at once has them placed before it asks.
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._new: list[Item] = []
        """Those that were not hashed yet."""
        self._lists: list[list[Item]] = [[] for _ in range(MAX_PARTS)]
        self._tidy_from = [_FEW] * MAX_PARTS

    def add(self, item: Item, there: Container[Item]) -> None:
        """An item came, which may be known; `there` are all that are there."""
        self._new.append(item)
        if len(self._new) >= CHUNK_ROWS:
            self.place_some(there)

    def add_all(self, items: Iterable[Item]) -> None:
        """Items came, which wait to be placed."""
        self._new += items

    def place_some(self, there: Container[Item]) -> None:
        """Hash a chunk of those that were not."""
        some = self._new[-CHUNK_ROWS:]
        del self._new[-CHUNK_ROWS:]
        self._place(some, there)

    def _place(self, some: list[Item], there: Container[Item]) -> None:
        if not some:
            return
        firsts = first_bytes(self._encode(some))
        order = np.argsort(firsts, kind="stable")
        found, starts = np.unique(firsts[order], return_index=True)
        in_order = list(map(some.__getitem__, order.tolist()))
        for byte, begin, end in zip(found.tolist(), starts.tolist(), [*starts[1:].tolist(), len(some)], strict=True):
            if not self._lists[byte]:
                self._tidy_from[byte] = 2 * (end - begin) + _FEW
            self._lists[byte] += in_order[begin:end]
            if len(self._lists[byte]) > self._tidy_from[byte]:
                self._tidy(byte, there)

    def within(self, part: Slice, there: Container[Item]) -> Iterator[Item]:
        """The items that are there and fall into a slice, each once."""
        some, self._new = self._new, []
        self._place(some, there)
        for byte in part.bytes():
            self._tidy(byte, there)
            yield from self._lists[byte]

    def _tidy(self, byte: int, there: Container[Item]) -> None:
        """Let those go that are gone, or named twice since they came again."""
        kept = [item for item in dict.fromkeys(self._lists[byte]) if item in there]
        self._lists[byte], self._tidy_from[byte] = kept, 2 * len(kept) + _FEW


class PlacesByHash:
    """The first byte of the hash of each key by place, as far as somebody has asked for it."""

    def __init__(self) -> None:
        self._firsts = bytearray()
        self._outdated: list[int] = []
        """The places that another key has got since."""

    def outdate(self, places: Sequence[int]) -> None:
        """Other keys have got places. Where many have, all are hashed anew when somebody asks: nobody may for long."""
        self._outdated += [place for place in places if place < len(self._firsts)]
        if len(self._outdated) > max(_FEW, len(self._firsts) // 2):
            self.clear()

    def outdate_one(self, place: int) -> None:
        """Another key has got a place."""
        if place < len(self._firsts):
            self.outdate([place])

    def within(self, part: Slice, keys: Sequence[Any], encode: Encode) -> Places:
        """The places of keys that fall into a slice, given the key of each place."""
        if self._outdated:
            some = encode([keys[place] for place in self._outdated])
            np.frombuffer(self._firsts, np.uint8)[self._outdated] = first_bytes(some)
            self._outdated = []
        self._firsts += first_bytes(encode(keys[len(self._firsts) :])).tobytes()
        firsts, wanted = np.frombuffer(self._firsts, np.uint8), part.bytes()
        return np.flatnonzero((firsts >= wanted.start) & (firsts < wanted.stop))

    def clear(self) -> None:
        """Know nothing."""
        self._firsts, self._outdated = bytearray(), []
