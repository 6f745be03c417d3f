"""Damage to bytes: what disks, crashes and hands do to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

_NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 62, (1 << 64) - 1)
_LONGEST = 64
"""Of a piece that is moved, doubled or lost; as often it is of any length."""


def mutated(random: Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """The bytes with one to three faults, perhaps with a part of another artefact of the kind; never as they were."""
    while True:
        found = data
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            found = random.choice(_FAULTS)(random, found) if found else random.randbytes(random.randrange(9))
        if others and random.random() < 0.1:
            found = _spliced(random, found, random.choice(others))
        if found != data:
            return found


def _piece(random: Random, data: bytes) -> tuple[int, int]:
    start = random.randrange(len(data))
    most = len(data) - start
    return start, start + random.randint(1, most if random.random() < 0.5 else min(most, _LONGEST))


def _flip(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << random.randrange(8))]) + data[at + 1 :]


def _set(random: Random, data: bytes) -> bytes:
    at = random.randrange(len(data))
    return (
        data[:at] + bytes([random.choice((0, 255, *b'"{}[],:-01289.e\\/\n', random.randrange(256)))]) + data[at + 1 :]
    )


def _number(random: Random, data: bytes) -> bytes:
    size = random.choice((2, 4, 8))
    at = random.randrange(len(data))
    number = random.choice(_NUMBERS) % (1 << (8 * size))
    return data[:at] + number.to_bytes(size, random.choice(("little", "big"))) + data[at + size :]


def _truncate(random: Random, data: bytes) -> bytes:
    return data[: random.randrange(len(data))]


def _lose(random: Random, data: bytes) -> bytes:
    start, end = _piece(random, data)
    return data[:start] + data[end:]


def _blank(random: Random, data: bytes) -> bytes:
    start, end = _piece(random, data)
    return data[:start] + bytes([random.choice((0, 255))]) * (end - start) + data[end:]


def _double(random: Random, data: bytes) -> bytes:
    start, end = _piece(random, data)
    return data[:end] + data[start:]


def _move(random: Random, data: bytes) -> bytes:
    start, end = _piece(random, data)
    piece, rest = data[start:end], data[:start] + data[end:]
    at = random.randint(0, len(rest))
    return rest[:at] + piece + rest[at:]


def _write_over(random: Random, data: bytes) -> bytes:
    start, end = _piece(random, data)
    at = random.randrange(len(data))
    return data[:at] + data[start:end] + data[at + end - start :]


def _grow(random: Random, data: bytes) -> bytes:
    return data + random.choice((b"\0", b"\n", b"}", data, random.randbytes(random.randint(1, _LONGEST))))


def _spliced(random: Random, data: bytes, other: bytes) -> bytes:
    """The beginning of one and the end of another, cut at the same place or at any."""
    at = random.randint(0, min(len(data), len(other)))
    return data[:at] + other[at if random.random() < 0.5 else random.randint(0, len(other)) :]


_FAULTS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _flip,
    _flip,
    _set,
    _number,
    _truncate,
    _lose,
    _blank,
    _double,
    _move,
    _write_over,
    _grow,
)
