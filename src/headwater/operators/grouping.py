"""Groups of rows by the values of columns, without a Python call per row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.int64]
Columns = Sequence[pa.Array | pa.ChunkedArray]
_DENSE = 4
"""Codes are numbered anew by a table of all possible ones while it has at most so many places per row."""


@dataclass(frozen=True)
class Grouped:
    """The group of each row, numbered from 0, and the first row of each group."""

    codes: Codes
    first: Codes

    def __len__(self) -> int:
        return len(self.first)


def group(columns: Columns, rows: int, above: Codes | None = None) -> Grouped:
    """Rows with equal values are one group; nulls are equal. `above` are codes that come first in the groups' order."""
    codes = np.zeros(rows, np.int64) if above is None else above
    size = int(codes.max()) + 1 if rows else 0
    for column in columns:
        if size > 1:
            codes, size = _dense(codes, size)
        values, count = _codes_of(column)
        codes, size = codes * count + values, size * count
    return _groups(codes, size)


def stacked(parts: Sequence[Columns]) -> list[pa.ChunkedArray]:
    """Columns end to end; those of one place have one type, whatever their names."""
    return [pa.chunked_array([chunk for part in parts for chunk in _chunks(part[at])]) for at in range(len(parts[0]))]


def among(columns: Columns, others: Sequence[Columns]) -> npt.NDArray[np.bool_]:
    """For each row, whether its values are those of a row of the others."""
    together = stacked([columns, *others])
    codes = group(together, len(together[0])).codes
    rows = len(columns[0])
    return np.isin(codes[:rows], codes[rows:])


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return column.chunks or [pa.array([], column.type)] if isinstance(column, pa.ChunkedArray) else [column]


def _codes_of(column: pa.Array | pa.ChunkedArray) -> tuple[Codes, int]:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_floating(column.type):
        column = pc.add(column, pa.scalar(0.0, column.type))  # the two zeros are one key
    if pa.types.is_struct(column.type):
        inner = group(column.flatten(), len(column))
        return inner.codes, max(1, len(inner))
    encoded = pc.dictionary_encode(column, null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), max(1, len(encoded.dictionary))


def _groups(codes: Codes, size: int) -> Grouped:
    codes, count = _dense(codes, size)
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return Grouped(codes, first)


def _dense(codes: Codes, size: int) -> tuple[Codes, int]:
    """The codes numbered without gaps, in the same order."""
    if size <= max(1024, _DENSE * len(codes)):
        seen = np.zeros(size, np.int64)
        seen[codes] = 1
        numbers = np.cumsum(seen) - 1
        return numbers[codes], int(seen.sum())
    found, inverse = np.unique(codes, return_inverse=True)
    return inverse.astype(np.int64), len(found)
