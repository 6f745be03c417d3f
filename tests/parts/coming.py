"""A live source whose splits come and go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headwater.connectors.contract import Positions
from headwater.testing import TimedRows

SCHEMA = "k string, ts long"
Presence = Sequence[tuple[int, int]]


class Coming(TimedRows):
    """Splits that are there from one time of the job to another, as topics that are made and deleted."""

    bounded = False

    def __init__(self, splits: Sequence[tuple[Presence, Sequence[tuple[int, Any]]]]) -> None:
        super().__init__([rows for _, rows in splits], SCHEMA)
        self._there = [spans for spans, _ in splits]

    def earliest(self) -> Positions:
        return self._at(super().earliest(), 0)

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return self._at(super().latest(start, elapsed_ms), elapsed_ms)

    def _at(self, positions: Positions, elapsed_ms: int) -> Positions:
        is_there = [any(begin <= elapsed_ms < end for begin, end in spans) for spans in self._there]
        return {split: at for split, at in positions.items() if is_there[int(split)]}
