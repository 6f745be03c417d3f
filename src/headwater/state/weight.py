"""What the rows of a state take, as columns, as far as what was written tells: no state is looked through to know its size."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.sampled_weight import SampledWeight, is_of_one_size
from headwater.state.table import PUT

_FEW_ROWS = 1024
"""So many rows count at least, however few are kept, so that a state of a handful does not jump about."""


class Weight(Protocol):
    """What the rows of a state take, without what compression saves."""

    def see(self, written: pa.Table, kept: int) -> None:
        """Rows were written: those of a delta, or of a dump that nobody has told of; so many are kept now."""

    def of(self, rows: int) -> int:
        """What so many rows take, about: those that are kept."""

    def forget(self) -> None:
        """The state is empty, or told anew."""


def weight_of(schema: pa.Schema, row_bytes: float) -> Weight:
    """The weight of a state with such changes; until something was written, what types tell of a row counts."""
    is_by_key = schema.names[:2] == ["op", "key"]
    if is_by_key and not all(is_of_one_size(field.type) for field in schema):
        return SampledWeight(schema, row_bytes)
    return MeanWeight(row_bytes)


class MeanWeight:
    """The weight of rows that are all of one size, or that stay as they were written.

    Of what was written, about as many of the newest rows count as are kept.
    """

    def __init__(self, row_bytes: float) -> None:
        self._row_bytes, self._rows = row_bytes, 0

    def see(self, written: pa.Table, kept: int) -> None:
        ops = written.column(0)
        puts = pc.equal(ops, PUT)
        if not pc.all(puts).as_py():
            written = written.filter(puts)
        rows = len(written)
        if rows:
            before = min(self._rows, max(kept, _FEW_ROWS))
            size_bytes = written.nbytes - ops.type.bit_width // 8 * rows
            self._row_bytes = (self._row_bytes * before + size_bytes) / (before + rows)
            self._rows = before + rows

    def of(self, rows: int) -> int:
        return round(self._row_bytes * rows)

    def forget(self) -> None:
        self._rows = 0
