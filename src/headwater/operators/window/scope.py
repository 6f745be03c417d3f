"""State and timers per window: they belong to the key together with the window."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.graph.edges import Key
from headwater.state.spread import TO_FIRST, ByKey, Spread
from headwater.windows.assigners import Window

_BY_KEY_OF_SCOPE: Spread = ByKey(["key"], lambda table: pc.struct_field(table["key"], "key"))

Scope = tuple[Any, int, int]
"""A key and the bounds of one of its windows."""


def scope_type(key: pa.DataType) -> pa.DataType:
    """The type of a scope as the key of an entry."""
    return pa.struct([pa.field("key", key), pa.field("start", pa.int64()), pa.field("end", pa.int64())])


def scope_spread(key: Key) -> Spread:
    """Where state of a window goes: to where its key is."""
    return TO_FIRST if key.is_nothing else _BY_KEY_OF_SCOPE


def scope_of(key: Any, window: Window) -> Scope:
    """The scope of a key's window."""
    return (key, window.start, window.end)
