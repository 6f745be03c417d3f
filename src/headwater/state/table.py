"""The contract between working state and its changelog: every state is a table of typed entries."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.rows import encode
from headwater.state.keys import key_groups

PUT, REMOVE, CLEAR = 0, 1, 2
"""What a row of a change table does: set an entry, remove an entry, remove all entries of a key."""


class StateTable(Protocol):
    """State that can tell what changed, be brought up to date from that, and write itself out whole.

    Applying the changes of each epoch in turn gives the same entries in the same order as the original: operators may
    iterate, and an epoch replayed on a rebuilt copy must give the same bytes.
    """

    def changes(self) -> pa.Table | None:
        """What changed since the last call, or None; forgets it."""

    def dump(self) -> pa.Table:
        """All entries, as puts."""

    def apply(self, changes: pa.Table) -> None:
        """Make the changes of another copy here."""

    def clear_all(self) -> None:
        """Forget everything."""

    def __len__(self) -> int:
        """The number of entries."""


class KeyedLayout:
    """The columns of a keyed state's change table and how to fill them."""

    def __init__(
        self, step: str, name: str, key: pa.DataType, columns: list[tuple[str, pa.DataType]], groups: int
    ) -> None:
        self.step, self.name, self._groups = step, name, groups
        self._key = pa.field("key", key)
        self._fields = [pa.field(column, dtype) for column, dtype in columns]
        self.schema = pa.schema([pa.field("op", pa.int8()), pa.field("group", pa.int32()), self._key, *self._fields])

    def table(self, ops: list[int], keys: list[Any], *columns: list[Any]) -> pa.Table:
        where = f"{self.step}, state {self.name!r}"
        key = encode(keys, self._key, where)
        arrays = [encode(values, field, where) for values, field in zip(columns, self._fields, strict=True)]
        groups = key_groups(key, self._groups).astype(np.int32)
        return pa.Table.from_arrays([pa.array(ops, pa.int8()), pa.array(groups), key, *arrays], schema=self.schema)
