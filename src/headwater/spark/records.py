"""The changelog's records in Spark's state store: one map from a number to bytes, as text.

Registering a state variable costs 10 to 30 ms in each task, because the JVM makes its encoders anew; so there is one
variable, with the simplest types, and the head is an entry of the map like any other. Schemas are given as objects, since
text is sent to the JVM for parsing.
"""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from io import BytesIO

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from headwater.errors import ChangelogError
from headwater.spark.ascii import from_ascii, to_ascii
from headwater.state.changelog import Head, pieces

_KEY = StructType([StructField("number", LongType())])
_AS_TEXT = StructType([StructField("data", StringType())])
_AS_BYTES = StructType([StructField("data", BinaryType())])
_TEXT_SINCE = 2
"""The version of job folders since which pieces are stored as text; Spark keeps the type that a variable began with."""
VARIABLE = "changelog"
HEAD = 0
"""The number of the head; records are numbered from 1, each with room for a million pieces."""
_PIECES = 1 << 20
_MAGIC = b"HWP\x02"
_PREFIX = struct.Struct("<4sI")
"""In front of each piece: how it begins, and a checksum of its place and its start."""
_PLACE = struct.Struct("<QI32s")
"""Behind that, the piece's place: its number, how many pieces its record has, and the token of the attempt that wrote it."""
_START_BYTES = 64
"""How much of a piece its checksum covers. A record begins with a checksum of all of it, so this ties the whole record to
its number, and one in the place of another is refused, without reading gigabytes twice."""
_UNPLACED = struct.Struct("<I32s")
"""What was in front of a piece before it knew its number: the number of pieces, and the token."""


def first_number(sequence: int) -> int:
    """The number of the first piece of a record; those of later records are higher."""
    return sequence * _PIECES


class PiecedRecords(ABC):
    """A `RecordStore` whose records are kept in numbered pieces."""

    @abstractmethod
    def _get(self, number: int) -> bytes | memoryview | None:
        """What is kept under a number."""

    @abstractmethod
    def _put(self, number: int, data: bytes) -> None:
        """Keep something under a number."""

    @abstractmethod
    def _remove(self, number: int) -> None:
        """Drop what is kept under a number."""

    def head(self) -> Head | None:
        stored = self._get(HEAD)
        return (
            None
            if stored is None
            else Head.from_text(bytes(stored).decode(errors="replace"), "the head of stored state")
        )

    def set_head(self, head: Head) -> None:
        self._put(HEAD, head.to_text().encode())

    def token(self, sequence: int) -> str | None:
        found = self._piece(sequence, 0)
        return None if found is None else found[1]

    def read(self, sequence: int) -> bytes | None:
        first = self._piece(sequence, 0)
        if first is None:
            return None
        count, _, piece = first
        if count == 1:
            return bytes(piece)
        record = BytesIO()  # grows in place, so that the record is not there twice
        record.write(piece)
        for part in range(1, count):
            found = self._piece(sequence, part)
            if found is None:
                raise ChangelogError.bad_blob(f"record {sequence} lacks part {part} of {count}")
            record.write(found[2])
        return record.getvalue()

    def write(self, sequence: int, token: str, record: bytes) -> None:
        cut = pieces(record)
        for part, piece in enumerate(cut):
            number = first_number(sequence) + part
            place = _PLACE.pack(number, len(cut), token.encode())
            self._put(number, b"".join([_PREFIX.pack(_MAGIC, _check(place, piece)), place, piece]))

    def remove(self, sequence: int) -> None:
        first = self._piece(sequence, 0)
        if first is not None:
            for part in range(first[0]):
                self._remove(first_number(sequence) + part)

    def _piece(self, sequence: int, part: int) -> tuple[int, str, memoryview] | None:
        """How many pieces the record has, the token of its writer, and this piece, which is not copied."""
        number = first_number(sequence) + part
        data = self._get(number)
        if data is None:
            return None
        try:
            if data[: len(_MAGIC)] != _MAGIC:
                count, token = _UNPLACED.unpack_from(data)
                return count, token.decode(), memoryview(data)[_UNPLACED.size :]
            _, check = _PREFIX.unpack_from(data)
            start = _PREFIX.size + _PLACE.size
            place, piece = data[_PREFIX.size : start], memoryview(data)[start:]
            placed_at, count, token = _PLACE.unpack(place)
            if check != _check(place, piece):
                raise ChangelogError.bad_blob(f"the checksum of part {part} of record {sequence} does not fit")
            if placed_at != number:
                raise ChangelogError.bad_blob(
                    f"in the place of part {part} of record {sequence} is {_named(placed_at)}"
                )
            return count, token.decode(), piece
        except (struct.error, ValueError) as error:
            raise ChangelogError.bad_blob(f"part {part} of record {sequence}: {error}") from None


def _check(place: bytes | memoryview, piece: bytes | memoryview) -> int:
    return zlib.crc32(piece[:_START_BYTES], zlib.crc32(place))


def _named(number: int) -> str:
    sequence, part = divmod(number, _PIECES)
    return f"part {part} of record {sequence}"


def as_bytes(number: int, stored: bytes | bytearray | str) -> bytes | memoryview:
    """What Spark's store has under a number."""
    if not isinstance(stored, str):
        return memoryview(stored)
    try:
        return from_ascii(stored)
    except ValueError as error:
        raise ChangelogError.bad_blob(f"{_named(number)}: {error}") from None


class SparkRecordStore(PiecedRecords):
    """Records in a state variable; every call is a round trip to the JVM, so there are few of them."""

    def __init__(self, handle: StatefulProcessorHandle, folder_version: int) -> None:
        self._is_text = folder_version >= _TEXT_SINCE
        self._map = handle.getMapState(VARIABLE, _KEY, _AS_TEXT if self._is_text else _AS_BYTES)

    def _get(self, number: int) -> bytes | memoryview | None:
        found = self._map.getValue((number,))
        return None if found is None else as_bytes(number, found[0])

    def _put(self, number: int, data: bytes) -> None:
        self._map.updateValue((number,), (to_ascii(data) if self._is_text else data,))

    def _remove(self, number: int) -> None:
        self._map.removeKey((number,))


class ReadRecords(PiecedRecords):
    """Records that were read back, to look at."""

    def __init__(self, found: dict[int, bytes | memoryview]) -> None:
        self._found = found

    def _get(self, number: int) -> bytes | memoryview | None:
        return self._found.get(number)

    def _put(self, number: int, data: bytes) -> None:
        self._found[number] = data

    def _remove(self, number: int) -> None:
        self._found.pop(number, None)
