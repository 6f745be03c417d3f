"""What a lookup has found for keys, kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Rows = Sequence[Any]


class LookupCache:
    """A bounded number of keys with their rows, none for a miss; the least recently used leave first.

    An entry lasts for `ttl_ms` of processing time from the epoch that looked it up.
    """

    def __init__(self, entries: int, ttl_ms: int | None) -> None:
        self._entries, self._ttl_ms = entries, ttl_ms
        self._kept: OrderedDict[Any, tuple[int, Rows]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, keys: Iterable[Any], now_ms: int) -> dict[Any, Rows]:
        """The rows of those keys that are known and not too old; they count as used."""
        found = {}
        for key in keys:
            entry = self._kept.get(key)
            if entry is None:
                continue
            looked_up_ms, rows = entry
            if self._ttl_ms is not None and now_ms - looked_up_ms >= self._ttl_ms:
                del self._kept[key]
            else:
                self._kept.move_to_end(key)
                found[key] = rows
        return found

    def put(self, found: Mapping[Any, Rows], now_ms: int) -> None:
        """Keep what was looked up."""
        for key, rows in found.items():
            self._kept[key] = (now_ms, rows)
        while len(self._kept) > self._entries:
            self._kept.popitem(last=False)
