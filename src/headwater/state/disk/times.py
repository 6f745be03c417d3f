"""The index of a state with a ttl on disk: what was written lately is in memory, the rest in RocksDB by time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from headwater.state.codec import key_codec, value_codec
from headwater.state.disk.rocks import RocksStore
from headwater.state.time_index import Buckets

HELD_ITEMS = 100_000
"""So many may be in memory; at about 100 bytes each, and what their keys take."""
_BIAS = 1 << 63
_TIME = struct.Struct(">Q")
_LENGTH = struct.Struct(">I")
_UNTIMED = b"u"
_TIMED = b"t"


class DiskTimes:
    """On disk an item is a row without a value: its key is the time and the item, so that a scan is by time."""

    def __init__(self, store: RocksStore, prefix: bytes, key: pa.DataType, entry: pa.DataType | None) -> None:
        self._store, self._prefix = store, prefix
        self._key = key_codec(key)
        self._entry = None if entry is None else value_codec(entry)
        self._held, self._on_disk = Buckets(), 0

    def add(self, time_ms: int | None, item: Any) -> None:
        self._held.add(time_ms, item)
        if len(self._held) > HELD_ITEMS:
            self._move()

    def add_all(self, time_ms: int | None, items: Sequence[Any]) -> None:
        self._held.add_all(time_ms, items)
        if len(self._held) > HELD_ITEMS:
            self._move()

    def until(self, time_ms: int) -> list[Any]:
        found = self._held.until(time_ms)
        if self._on_disk and time_ms >= -_BIAS:
            found += self._taken(_TIMED, _TIME.pack(time_ms + _BIAS))
        return found

    def untimed(self) -> list[Any]:
        found = self._held.untimed()
        return found + self._taken(_UNTIMED, None) if self._on_disk else found

    def clear(self) -> None:
        self._held.clear()
        if self._on_disk:
            for kind in (_TIMED, _UNTIMED):
                self._store.remove(self._prefix + kind)
        self._on_disk = 0

    def __len__(self) -> int:
        return len(self._held) + self._on_disk

    def _move(self) -> None:
        """Let all that is in memory go to disk."""
        batch = self._store.batch()
        rows = {self._row(time_ms, item) for time_ms, item in self._held.items()}
        for row in rows:
            batch.put(row, b"")
        self._store.write(batch)
        self._on_disk += len(rows)
        self._held.clear()

    def _taken(self, kind: bytes, last: bytes | None) -> list[Any]:
        """Take the items of a kind out that are on disk, up to those of a time."""
        prefix, found = self._prefix + kind, []
        batch = self._store.batch()
        for row, _ in self._store.scan(prefix):
            if last is not None and row[: _TIME.size] > last:
                break
            batch.delete(prefix + row)
            found.append(self._item(row[_TIME.size :]))
        self._store.write(batch)
        self._on_disk -= len(found)
        return found

    def _row(self, time_ms: int | None, item: Any) -> bytes:
        kind, time = (_UNTIMED, 0) if time_ms is None else (_TIMED, time_ms + _BIAS)
        start = self._prefix + kind + _TIME.pack(time)
        if self._entry is None:
            return start + self._key.encode(item)
        key = self._key.encode(item[0])
        return start + _LENGTH.pack(len(key)) + key + self._entry.encode(item[1])

    def _item(self, data: bytes) -> Any:
        if self._entry is None:
            return self._key.decode(data)
        end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
        return self._key.decode(data[_LENGTH.size : end]), self._entry.decode(data[end:])
