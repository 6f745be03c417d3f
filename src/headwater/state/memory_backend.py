"""The backend that keeps working state in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.descriptors import StateDeclaration
from headwater.state.kept_columns import KeptByColumns
from headwater.state.memory import KeyTable
from headwater.state.packed import PackedTable
from headwater.state.shelf import IN_MEMORY
from headwater.state.table import KeyedLayout
from headwater.state.time_index import Buckets
from headwater.state.timers import HeapTimers


class MemoryBackend:
    """Keeps the working state of a step in memory."""

    shelf = IN_MEMORY

    def table(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> KeyTable:
        return KeyTable(len(declarations))

    def numbers(self, declarations: Sequence[StateDeclaration], key: pa.DataType) -> PackedTable:
        return PackedTable(declarations)

    def accumulators(self, layout: KeyedLayout, schema: pa.Schema) -> KeptByColumns:
        return KeptByColumns(layout, schema)

    def timers(self, key: pa.DataType) -> HeapTimers:
        return HeapTimers()

    def times(self, declaration: StateDeclaration, key: pa.DataType) -> Buckets:
        return Buckets()

    def close(self) -> None:
        """Memory needs no closing."""


MEMORY = MemoryBackend()
