"""Which pairs of a join a condition is true for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data import expressions
from headwater.operators.user_code import user_code_failed

_KEPT = pa.schema([("is_pair", pa.bool_())])


def places_of_pairs(query: str, pairs: pa.Table, step: str, now_ms: int | None = None) -> npt.NDArray[np.int64]:
    """The places of pairs that a query keeps, in order."""
    try:
        return expressions.run(query, pairs, _KEPT, now_ms)[1]
    except BaseException as error:
        raise user_code_failed(error, step) from None
