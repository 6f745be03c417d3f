"""What a row of a state takes, as far as what was written of it tells: no state is looked through to know its size."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headwater.state.table import PUT

_FEW_ROWS = 1024
"""So many rows count at least, however few are kept, so that a state of a handful does not jump about."""


class Weight:
    """The mean size of the rows of a state, as columns, without what compression saves.

    Of what was written, about as many of the newest rows count as are kept.
    """

    def __init__(self, row_bytes: float) -> None:
        """Until something was written, what types tell counts."""
        self._row_bytes, self._rows = row_bytes, 0

    def see(self, written: pa.Table, kept: int) -> None:
        """Rows were written: those of a delta or of a dump; so many are kept now."""
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
        """What so many rows take, about."""
        return round(self._row_bytes * rows)
