"""What the rows of a changelog do: insert a row, delete one, or change one by taking it back and giving another.

Kinds travel beside the columns of rows, in `Batch.kinds`. They become a column, `row_kind`, where somebody asks for it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.errors import RowError

ROW_KIND = "row_kind"
"""The column in which kinds are shown and read: '+I', '-U', '+U' or '-D'."""
ROW_KIND_FIELD = pa.field(ROW_KIND, pa.string())

INSERT, UPDATE_BEFORE, UPDATE_AFTER, DELETE = range(4)
_NAMES = ("+I", "-U", "+U", "-D")

Kinds = npt.NDArray[np.int8]


def inserts(count: int) -> Kinds:
    """The kinds of rows that all insert."""
    return np.full(count, INSERT, np.int8)


def read_kinds(rows: pa.Table, step: str) -> Kinds:
    """What each row does; where there is no column that says it, all insert."""
    if ROW_KIND not in rows.column_names:
        return inserts(len(rows))
    names = rows.column(ROW_KIND)
    kinds = pc.index_in(names, value_set=pa.array(_NAMES))
    if kinds.null_count:
        unknown = names.filter(kinds.is_null())[0].as_py()
        raise RowError.value_does_not_fit(
            step, ROW_KIND, unknown, "+I, -U, +U or -D", "a row of a changelog is one of these"
        )
    found: Kinds = kinds.to_numpy().astype(np.int8)
    return found


def adds(kinds: Kinds) -> npt.NDArray[np.bool_]:
    """Which rows add one; the others take one back."""
    adding: npt.NDArray[np.bool_] = (kinds == INSERT) | (kinds == UPDATE_AFTER)
    return adding


def kind_names(kinds: Kinds) -> pa.Array:
    """The kinds as the column shows them."""
    return pa.array(_NAMES).take(pa.array(kinds))
