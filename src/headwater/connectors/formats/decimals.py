"""Decimals that are written as text, each read by its own digits.

Arrow 25 scales a decimal with a table of powers of ten and does not look where it ends: `1e-77` becomes another number,
`1e-99999999` a crash. So texts whose digits may be far from the point are not given to it.
"""

from __future__ import annotations

import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.rows import encode
from headwater.errors import RowError, short

FAR_DECIMAL = re.compile(rb"\d[eE][+-]?\d|\.\d{39}")
"""In a text that holds decimals: one whose digits may be far from its point."""
_FAR = r"[eE]|\.[0-9]{39}"
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


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
