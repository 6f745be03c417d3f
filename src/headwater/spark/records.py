"""The changelog's records in Spark's state store: a map from (sequence, part) to pieces, and the committed head."""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from headwater.errors import ChangelogError
from headwater.state.changelog import Head, pieces


class SparkRecordStore:
    """A `RecordStore` over state variables; every call is a round trip to the JVM, so there are few of them."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._records = handle.getMapState("records", "sequence long, part int", "parts int, token string, data binary")
        self._head = handle.getValueState(
            "head", "sequence long, token string, base long, base_bytes long, delta_bytes long"
        )

    def head(self) -> Head | None:
        stored = self._head.get()
        return None if stored is None else Head(*stored)

    def set_head(self, head: Head) -> None:
        self._head.update((head.sequence, head.token, head.base, head.base_bytes, head.delta_bytes))

    def token(self, sequence: int) -> str | None:
        found = self._piece(sequence, 0)
        return None if found is None else found[1]

    def read(self, sequence: int) -> bytes | None:
        first = self._piece(sequence, 0)
        if first is None:
            return None
        parts = [bytes(first[2])]
        for part in range(1, first[0]):
            piece = self._piece(sequence, part)
            if piece is None:
                raise ChangelogError.bad_blob(f"record {sequence} lacks part {part} of {first[0]}")
            parts.append(bytes(piece[2]))
        return b"".join(parts)

    def write(self, sequence: int, token: str, record: bytes) -> None:
        cut = pieces(record)
        for part, piece in enumerate(cut):
            self._records.updateValue((sequence, part), (len(cut), token, piece))

    def remove(self, sequence: int) -> None:
        first = self._piece(sequence, 0)
        if first is not None:
            for part in range(first[0]):
                self._records.removeKey((sequence, part))

    def _piece(self, sequence: int, part: int) -> Any:
        return self._records.getValue((sequence, part))
