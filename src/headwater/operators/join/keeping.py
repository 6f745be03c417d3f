"""What joins that keep rows share: their stores as state, and the count of rows that came for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.operators.contract import StatefulOperator
from headwater.operators.join.store import RowStore, merged_stores
from headwater.state.table import StateTable


class KeepsRows(StatefulOperator):
    """A join over stores by name."""

    def __init__(self, stores: dict[str, RowStore]) -> None:
        self._stores = stores
        self._dropped = 0

    def tables(self) -> dict[str, StateTable]:
        return {**self._stores}

    def counters(self) -> dict[str, int]:
        dropped, self._dropped = self._dropped, 0
        return {"late_dropped": dropped}

    def meta(self) -> dict[str, Any]:
        return {name: store.meta() for name, store in self._stores.items()}

    def set_meta(self, meta: dict[str, Any]) -> None:
        for name, store in self._stores.items():
            store.set_meta(meta[name])

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return merged_stores(metas)
