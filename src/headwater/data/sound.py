"""What every value must be: text is UTF-8, and times are of the years 1 to 9999, which Python's datetimes have.

Arrow's columns can hold others. Rows are looked at where they come into a job and where they leave it, so that nothing
that makes rows visible after their epoch is committed meets a value that it cannot write.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

FIRST_MICROS, LAST_MICROS = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The microseconds since the epoch that a datetime can be of."""
_DAY_MICROS = 86_400_000_000
_FIRST_DAY, _LAST_DAY = FIRST_MICROS // _DAY_MICROS, LAST_MICROS // _DAY_MICROS


class Fault(NamedTuple):
    """What is wrong with a value of a column."""

    column: str
    what: str

    def __str__(self) -> str:
        return f"column {self.column!r}: {self.what}"


def fault_in(rows: pa.Table | pa.RecordBatch) -> Fault | None:
    """The first column with a value that no row can have, if there is one."""
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        for array in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            for leaf in _leaves(array):
                if what := _fault(leaf):
                    return Fault(name, what)
    return None


def _fault(array: pa.Array) -> str:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        return "text is not UTF-8" if "UTF8" in str(error) else str(error)
    if pa.types.is_timestamp(array.type):
        return _far(array.view(pa.int64()), FIRST_MICROS, LAST_MICROS, "time is {} microseconds")
    if pa.types.is_date(array.type):
        return _far(array.view(pa.int32()), _FIRST_DAY, _LAST_DAY, "date is {} days")
    return ""


def _far(since: pa.Array, first: int, last: int, shown: str) -> str:
    ends = pc.min_max(since).as_py()
    for end in (ends["min"], ends["max"]):
        if end is not None and not first <= end <= last:
            return f"a {shown.format(end)} from 1970, and not of the years 1 to 9999"
    return ""


def _leaves(array: pa.Array) -> Iterator[pa.Array]:
    """The columns without others in them that one is made of, with the values that are in use."""
    dtype = array.type
    if pa.types.is_struct(dtype):
        for inner in array.flatten():
            yield from _leaves(inner)
    elif pa.types.is_list(dtype):
        yield from _leaves(array.flatten())
    elif pa.types.is_map(dtype):
        first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
        for inner in (array.keys, array.items):
            yield from _leaves(inner.slice(first, last - first))
    else:
        yield array
