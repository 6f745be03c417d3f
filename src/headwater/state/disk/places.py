"""Where keys are on disk: the first byte of the hash of a key, so that a slice is a range, and the key as bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from headwater.data.rows import encode
from headwater.state.codec import key_codec
from headwater.state.keys import hash_of_one
from headwater.state.slices import first_byte, first_bytes


class KeyPlaces:
    """The places of keys of one type."""

    def __init__(self, key: pa.DataType, step: str) -> None:
        self._key, self._step = pa.field("key", key), step
        self._codec, self._hash = key_codec(key), hash_of_one(key)

    def of(self, key: Any) -> bytes:
        """The place of a key."""
        if self._hash is None:
            return next(self.of_all([key]))
        return bytes([first_byte(self._hash(key))]) + self._codec.encode(key)

    def of_all(self, keys: Sequence[Any]) -> Iterator[bytes]:
        """The places of keys."""
        first = first_bytes(encode(keys, self._key, self._step)).tobytes()
        return (first[at : at + 1] + data for at, data in enumerate(map(self._codec.encode, keys)))

    def key_at(self, place: bytes) -> Any:
        """The key that has a place."""
        return self._codec.decode(place[1:])
