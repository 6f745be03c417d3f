"""Bytes as ASCII text, and back.

Spark's state server gives bytes to Python as Latin-1 text in UTF-8, made and read one by one: 20 ns a byte on both sides.
Plain ASCII is copied as a block. So the highest bits of seven bytes are put into an eighth one: bytes are cut into seven
rows, below which stands a row of what was taken from them, and behind that how many bytes the last row was short of.
"""

from __future__ import annotations

import numpy as np

_ROWS = 7
_HIGH = 128


def to_ascii(data: bytes) -> str:
    """The text of some bytes, longer than they are by a seventh."""
    width = -(-len(data) // _ROWS)
    rows = np.zeros((_ROWS + 1, width), np.uint8)
    rows.reshape(-1)[: len(data)] = np.frombuffer(data, np.uint8)
    for row in range(_ROWS):
        rows[_ROWS] |= rows[row] >> 7 << row
    rows[:_ROWS] &= _HIGH - 1
    return str(rows.data, "ascii") + str(_ROWS * width - len(data))


def from_ascii(text: str) -> memoryview:
    """The bytes of a text; a ValueError if it is of none."""
    data = text.encode("ascii")
    width, rest = divmod(len(data), _ROWS + 1)
    short = int(data[-1:])
    if rest != 1 or short >= _ROWS or short > _ROWS * width:
        raise ValueError(f"{len(text)} characters that end with {text[-1:]!r} are not bytes as text")
    rows = np.frombuffer(data, np.uint8, count=len(data) - 1).reshape(_ROWS + 1, width)
    made = np.empty((_ROWS, width), np.uint8)
    for row in range(_ROWS):
        np.bitwise_or(rows[row], rows[_ROWS] << (_ROWS - row) & _HIGH, out=made[row])
    return made.reshape(-1)[: _ROWS * width - short].data
