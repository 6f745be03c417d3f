"""Event time out of a column, as integer milliseconds.

The smallest integer is Flink's word for no timestamp, and ours; a row that has it by chance would be read as a row without.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Timestamps
from headwater.errors import SourceError


def timestamps_of(table: pa.Table, column: str, step: str, *, takes_none: bool = False) -> Timestamps:
    """The event time of each row, rounded down to the millisecond; a null and the smallest integer are errors.

    With `takes_none` the smallest integer is what somebody says who means no time.
    """
    values = table.column(column)
    if values.null_count:
        at = values.is_null().index(True).as_py()
        raise SourceError.bad_timestamp(step, column, "null", table.slice(at, 1).to_pylist()[0])
    if pa.types.is_timestamp(values.type):
        micros: Timestamps = values.cast(pa.int64()).to_numpy()
        return np.floor_divide(micros, 1000)
    millis: Timestamps = values.to_numpy()
    if not takes_none and len(millis) and millis.min() == MIN_TIMESTAMP:
        row = table.slice(int(millis.argmin()), 1).to_pylist()[0]
        raise SourceError.bad_timestamp(step, column, "the smallest 64-bit integer, which stands for no time,", row)
    return millis
