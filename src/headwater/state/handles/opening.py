"""Opens the states that a step declares: the handles that functions hold, over entries that a backend keeps."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from headwater.data.rows import is_mutable
from headwater.descriptors import StateDeclaration, ValueState
from headwater.state.backend import StateBackend
from headwater.state.handles.expiring import ExpiringSlot, as_kept
from headwater.state.handles.expiring_lists import ExpiringListHandle
from headwater.state.handles.expiring_maps import ExpiringMapHandle
from headwater.state.handles.expiring_values import (
    ExpiringAggregatingHandle,
    ExpiringCopiedValueHandle,
    ExpiringReducingHandle,
    ExpiringValueHandle,
)
from headwater.state.handles.lists import ListHandle
from headwater.state.handles.maps import MapHandle
from headwater.state.handles.numbers import NumberHandle
from headwater.state.handles.values import AggregatingHandle, CopiedValueHandle, ReducingHandle, ValueHandle
from headwater.state.memory import Cursor, KeyTable
from headwater.state.memory_backend import MEMORY
from headwater.state.packed import PackedTable, are_packed
from headwater.state.spread import BY_KEY, Spread
from headwater.state.table import KeyedLayout, StateTable

_HANDLES: dict[str, Callable[[Any, KeyTable, int, Cursor, KeyedLayout], StateTable]] = {
    "value": lambda declaration, *place: (CopiedValueHandle if is_mutable(declaration.type) else ValueHandle)(
        declaration, *place
    ),
    "list": ListHandle,
    "map": MapHandle,
    "reducing": ReducingHandle,
    "aggregating": AggregatingHandle,
}
_EXPIRING: dict[str, Callable[[Any, KeyTable, int, Cursor, KeyedLayout], ExpiringSlot]] = {
    "value": lambda declaration, *place: (
        ExpiringCopiedValueHandle if is_mutable(declaration.type) else ExpiringValueHandle
    )(declaration, *place),
    "list": ExpiringListHandle,
    "map": ExpiringMapHandle,
    "reducing": ExpiringReducingHandle,
    "aggregating": ExpiringAggregatingHandle,
}
"""The handles of states with a ttl: those without one know nothing of time."""


def open_states(
    declarations: Iterable[StateDeclaration],
    step: str,
    key: pa.DataType,
    cursor: Cursor,
    spread: Spread = BY_KEY,
    *,
    backend: StateBackend = MEMORY,
) -> tuple[KeyTable, dict[str, StateTable]]:
    """The entries of a step, and the handle of each declared state by name."""
    declarations = list(declarations)
    table = _table(declarations, key, backend)
    packed = table if isinstance(table, PackedTable) else None
    handles: dict[str, StateTable] = {}
    for index, declaration in enumerate(declarations):
        layout = KeyedLayout(step, declaration.name, key, declaration.columns(), spread)
        if packed is not None and isinstance(declaration, ValueState):
            handles[declaration.name] = NumberHandle(declaration, packed, index, cursor, layout)
        elif declaration.ttl is None:
            handles[declaration.name] = _HANDLES[declaration.kind](declaration, table, index, cursor, layout)
        else:
            expiring = _EXPIRING[declaration.kind](declaration, table, index, cursor, layout)
            expiring.expires(declaration.ttl, backend.times(declaration, key))
            handles[declaration.name] = expiring
    return table, handles


def _table(declarations: list[StateDeclaration], key: pa.DataType, backend: StateBackend) -> KeyTable:
    """Where the entries are; of a step without states nowhere but here."""
    if not declarations:
        return KeyTable(0)
    if are_packed(declarations):
        return backend.numbers(declarations, key)
    return backend.table([as_kept(declaration) for declaration in declarations], key)
