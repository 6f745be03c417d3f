"""The bound on what a worker process holds in memory of state that is on disk: one for all of its steps and subtasks."""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, ClassVar, Protocol

if TYPE_CHECKING:
    from rocksdict import Cache, WriteBufferManager

_LEAST_CACHE_BYTES = 8 << 20
"""Below this RocksDB reads its own index again and again."""
_LET_GO, _MOST_LET_GO_BYTES = 32, 4 << 20
"""What is let go at a time, beyond what must go, is this part of what may be held, or so much: no epoch pays for many."""


class Holds(Protocol):
    """What has entries in memory that can be read again."""

    @property
    def held_bytes(self) -> int:
        """About what its entries take."""

    def let_go(self, size_bytes: int) -> int:
        """Write and forget the oldest entries, about so much, but none that the next delta needs; tells how much it was."""


class Bound:
    """Shares memory out: to entries as Python values, to RocksDB, and the rest to what an epoch changes."""

    ENTRIES: ClassVar[float] = 0.3
    ROCKS: ClassVar[float] = 0.375

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._more_bytes = min(int(size_bytes * self.ENTRIES / _LET_GO), _MOST_LET_GO_BYTES)
        self._holders: list[Holds] = []
        self._letting_go: list[Holds] = []
        """Those that let go just now: what they put elsewhere may need room, which is not made by them."""
        self._due_bytes = 0.0
        """Above this something must go."""

    def join(self, holder: Holds) -> None:
        """From now on this one is part of the sum."""
        self._holders.append(holder)

    def leave(self, holder: Holds) -> None:
        """It holds nothing any more."""
        self._holders = [one for one in self._holders if one is not holder]

    def make_room(self, more_bytes: int = 0) -> None:
        """Let those that hold most let go, if all and what is to come are more than is allowed.

        Entries that the next delta needs stay. When they alone are too much, nobody looks again before there is a good deal
        more: each look passes all of them.
        """
        allowed = self.size_bytes * self.ENTRIES
        held = sum(one.held_bytes for one in self._holders) + more_bytes
        if held <= max(allowed, self._due_bytes):
            return
        for holder in sorted(self._holders, key=lambda one: one.held_bytes, reverse=True):
            if held <= allowed or not holder.held_bytes:
                break
            if any(one is holder for one in self._letting_go):
                continue
            self._letting_go.append(holder)
            try:
                held -= holder.let_go(int(held - allowed) + self._more_bytes)
            finally:
                self._letting_go.pop()
        self._due_bytes = held + self._more_bytes if held > allowed else 0.0

    def told(self) -> None:
        """What was needed for a delta is not any more."""
        self._due_bytes = 0.0

    @cached_property
    def _cache_bytes(self) -> int:
        return max(int(self.size_bytes * self.ROCKS), _LEAST_CACHE_BYTES)

    @cached_property
    def cache(self) -> Cache:
        """What all databases of the process share for blocks read and, as a part of it, for rows not yet in files."""
        from rocksdict import Cache

        return Cache(self._cache_bytes)

    @cached_property
    def buffers(self) -> WriteBufferManager:
        """What bounds the rows not yet in files."""
        from rocksdict import WriteBufferManager

        return WriteBufferManager.new_write_buffer_manager_with_cache(
            buffer_size=self._cache_bytes // 4, allow_stall=False, cache=self.cache
        )


@cache
def bound_of(size_bytes: int) -> Bound:
    """The bound that all state of this process has that is given this size."""
    return Bound(size_bytes)
