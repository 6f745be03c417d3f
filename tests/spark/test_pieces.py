"""Records as Spark's state store keeps them: in pieces that know their places."""

from __future__ import annotations

import struct

import pytest

from headwater.errors import ChangelogError
from headwater.spark.records import ReadRecords, first_number
from headwater.state.changelog import MAX_PIECE_BYTES, Head

TOKEN = "0123456789abcdef" * 2
OTHER = "fedcba9876543210" * 2


def stored(**records: bytes) -> tuple[dict[int, bytes | memoryview], ReadRecords]:
    found: dict[int, bytes | memoryview] = {}
    store = ReadRecords(found)
    for name, record in records.items():
        store.write(int(name[1:]), TOKEN, record)
    return found, store


def test_record_of_several_pieces_is_read_as_it_was_written() -> None:
    record = bytes(range(256)) * (MAX_PIECE_BYTES // 128)
    found, store = stored(r7=record)
    assert len(found) == 2
    assert (store.read(7), store.token(7), store.read(8)) == (record, TOKEN, None)
    store.remove(7)
    assert not found


def test_record_in_the_place_of_another_is_refused() -> None:
    found, store = stored(r1=b"one", r2=b"two")
    found[first_number(1)] = found[first_number(2)]
    with pytest.raises(ChangelogError, match="in the place of part 0 of record 1 is part 0 of record 2"):
        store.read(1)


def test_record_under_the_number_and_token_of_another_is_refused() -> None:
    found, store = stored(r1=b"one", r2=b"two")
    found[first_number(1)] = found[first_number(1)][: -len(b"one")] + b"two"
    with pytest.raises(ChangelogError, match="the checksum of part 0 of record 1 does not fit"):
        store.read(1)


@pytest.mark.parametrize("at", range(4, 52))
def test_each_byte_in_front_of_a_piece_counts(at: int) -> None:
    found, store = stored(r1=b"HWCL a record")
    piece = bytearray(found[first_number(1)])
    piece[at] ^= 1
    found[first_number(1)] = bytes(piece)
    with pytest.raises(ChangelogError):
        store.read(1)


def test_pieces_without_a_number_from_before_are_read() -> None:
    found, store = stored()
    for part, piece in enumerate((b"half of it, ", b"and the rest")):
        found[first_number(3) + part] = struct.pack("<I32s", 2, OTHER.encode()) + piece
    store.set_head(Head(3, OTHER, 3, 24, 0))
    assert (store.read(3), store.token(3)) == (b"half of it, and the rest", OTHER)
    store.write(4, TOKEN, b"new")
    assert (store.read(3), store.read(4)) == (b"half of it, and the rest", b"new")
