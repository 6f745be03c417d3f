"""Which keys of a step no row has spoken of for a time, on any of its inputs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.batch import flat
from headwater.data.rows import decode, encode, make_rows, row_class
from headwater.graph.edges import Key
from headwater.operators.idle import idle_accumulators
from headwater.operators.join.keys import JoinKeys
from headwater.operators.keys import NO_KEY
from headwater.state.backend import StateBackend
from headwater.state.table import StateTable

LAST_USED = "@last_used"
"""The name of the state; it is of no use to a step that keeps what it has for ever."""
_USED = pa.schema([pa.field("used", pa.bool_())])


class LastUsed:
    """The keys of a step with the processing time of their last row."""

    def __init__(self, key: Key, step: str, ttl_ms: int, backend: StateBackend) -> None:
        self._key, self._has_one = pa.field("key", key.type), key.is_nothing
        self._kept = idle_accumulators(LAST_USED, _USED, step, key, ttl_ms=ttl_ms, backend=backend)

    @property
    def table(self) -> StateTable:
        return self._kept

    def use(self, rows: pa.Table, names: list[str]) -> None:
        """Rows have come whose keys are these columns."""
        columns = [decode(flat(rows.column(name))) for name in names]
        if not columns:
            keys: Iterable[Any] = [NO_KEY]
        else:
            keys = columns[0] if len(columns) == 1 else make_rows(row_class(tuple(names)), columns)
        self.use_keys(list(dict.fromkeys(keys)))

    def use_keys(self, keys: list[Any]) -> None:
        """Rows have come of these keys, each of which is there once."""
        used = pa.Table.from_arrays([pa.array(np.ones(len(keys), np.bool_))], schema=_USED)
        self._kept.update(keys, lambda *_: used)

    def unused(self, now_ms: int) -> JoinKeys:
        """It is this late: the keys that were idle for too long, which are forgotten."""
        keys = self._kept.at(now_ms)
        if self._has_one:
            return JoinKeys([], np.zeros(len(keys), np.uint64))
        array = encode(keys, self._key, self._key.name)
        return JoinKeys.of(array.flatten() if pa.types.is_struct(array.type) else [array])

    def use_again(self, keys: JoinKeys) -> None:
        """These are needed still."""
        self.use_keys(self.values(keys))

    def values(self, keys: JoinKeys) -> list[Any]:
        """Keys as Python has them."""
        if self._has_one:
            return [NO_KEY] * len(keys)
        array = keys.arrays[0]
        if pa.types.is_struct(self._key.type):
            array = pa.StructArray.from_arrays(keys.arrays, fields=list(self._key.type))
        return decode(array)
