"""The entry of a level for stateless steps and sinks behind an exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.batch import Batch
from headwater.operators.contract import Emit, StepTime
from headwater.state.table import StateTable


class PassOperator:
    """Hands rows on as they are."""

    needs_order = True

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        emit(None, Batch(batch.table, batch.timestamps))  # its key was for the way here only

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        """Nothing waits for time here."""

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        """Nothing waits for time here."""

    def tables(self) -> dict[str, StateTable]:
        return {}

    def counters(self) -> dict[str, int]:
        return {}

    def meta(self) -> dict[str, Any]:
        return {}

    def set_meta(self, meta: dict[str, Any]) -> None:
        """There is nothing to take over."""

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        return {}

    def reset(self) -> None:
        """There is nothing to forget."""
