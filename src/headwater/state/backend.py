"""The contract of state backends: where the working state of a keyed step lives.

What is stored for recovery is the changelog, which is the same whatever the backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from headwater.descriptors import StateDeclaration
from headwater.state.memory import KeyTable
from headwater.state.shelf import Shelf
from headwater.state.table import KeyedLayout
from headwater.state.time_index import TimeIndex
from headwater.state.timers import TimerStore

if TYPE_CHECKING:
    from headwater.state.accumulators import Accumulators
    from headwater.state.packed import PackedTable


class StateBackend(Protocol):
    """Keeps the working state of one step on one subtask."""

    def table(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> KeyTable:
        """A table for the entries of declared states."""

    def numbers(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> PackedTable:
        """A table for the entries of declared states that are plain numbers."""

    def accumulators(self, layout: KeyedLayout, schema: pa.Schema) -> Accumulators:
        """What holds accumulators of keys by columns."""

    def timers(self, key: pa.DataType) -> TimerStore:
        """What holds timers of keys."""

    def times(self, declaration: StateDeclaration, key: pa.DataType) -> TimeIndex:
        """The index of a state with a ttl: its items are keys, or for maps pairs of a key and a map entry."""

    @property
    def shelf(self) -> Shelf:
        """What holds columns."""

    def close(self) -> None:
        """Give everything up; nothing is left behind."""
