"""What joins that keep rows share: their stores as state, and the count of rows that came for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.late_rows import LateRow
from headwater.operators.contract import StatefulOperator
from headwater.operators.dropped import DroppedRows
from headwater.operators.join.store import RowStore, merged_stores
from headwater.state.table import StateTable


class KeepsRows(StatefulOperator):
    """A join over stores by name."""

    def __init__(self, stores: dict[str, RowStore], *, forgets: bool = False) -> None:
        """One that forgets counts what has expired."""
        self._stores, self._forgets = stores, forgets
        self._dropped, self._expired = DroppedRows(), 0

    def tables(self) -> dict[str, StateTable]:
        return {**self._stores}

    def counters(self) -> dict[str, int]:
        found = {"late_dropped": self._dropped.take_count()}
        if self._forgets:
            found["state_expired"] = self._expired
        self._expired = 0
        return found

    def late_rows(self) -> tuple[LateRow, ...]:
        return self._dropped.take_newest()

    def _forget(self, store: RowStore, until_ms: int) -> None:
        """Let rows go that came at a time or before."""
        before = len(store)
        store.expire(until_ms)
        self._expired += before - len(store)

    def meta(self) -> dict[str, Any]:
        return {name: store.meta() for name, store in self._stores.items()}

    def set_meta(self, meta: dict[str, Any]) -> None:
        for name, store in self._stores.items():
            store.set_meta(meta[name])

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return merged_stores(metas)
