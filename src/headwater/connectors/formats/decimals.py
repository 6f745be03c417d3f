"""Decimals that are written as text, each read by its own digits.

Arrow 25 scales a decimal with a table of powers of ten and does not look where it ends: `1e-77` becomes another number,
`1e-99999999` a crash. So texts whose digits may be far from the point are not given to it.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.rows import encode
from headwater.errors import RowError, short

_LONG = re.compile(rb"\.\d{39}")
_ESCAPED = re.compile(rb"\\u00(?:2[bdeBDE]|3\d|[46]5)")
"""What a number is made of, written as JSON may write any letter of a text."""
_NUMBER = re.compile(rb"""[:\[,"\s][+-]?[\d.]+[eE][+-]?\d+["\s,\]}]""")
_FAR = r"[eE]|\.[0-9]{39}"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def may_be_far(text: bytes) -> bool:
    """Whether a text of JSON may have a decimal whose digits are far from the point: a quick look at many rows."""
    letters = np.frombuffer(text, np.uint8)
    before = letters[np.flatnonzero((letters[1:] | 0x20) == ord("e"))]
    has_exponent = bool(((before - ord("0") <= 9) | (before == ord("."))).any())  # below "0" it wraps around
    return has_exponent or b"\\u00" in text or _LONG.search(text) is not None


def is_far(text: bytes) -> bool:
    """Whether a text of JSON has a number, or a text that is one, whose digits may be far from the point."""
    return any(one.search(text) is not None for one in (_NUMBER, _LONG, _ESCAPED))


def decimals(texts: pa.Array | pa.ChunkedArray, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """A column of decimals, which may be null and may have space around them; `ValueError` if one does not fit."""
    texts = pc.utf8_trim(texts, " \t")
    if not pc.any(pc.match_substring_regex(texts, _FAR)).as_py():
        return texts.cast(field.type)
    values = texts.to_pylist()
    if (
        wrong := next((text for text in values if text is not None and not _DECIMAL.fullmatch(text)), None)
    ) is not None:
        raise ValueError(f"{short(wrong)} is not a decimal")
    try:
        numbers = [None if text is None else Decimal(text) for text in values]
        return encode(numbers, pa.field(field.name, field.type), "csv")
    except RowError as error:
        raise ValueError(str(error).removeprefix("step 'csv', ")) from None
