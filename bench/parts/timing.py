"""The speed of a job over the epochs after its warm-up, on both sides, and the form of the result."""

from __future__ import annotations

import json
import time
from typing import Any

import headwater as hw

WARM_UP = 2
"""Epochs of each side that are not counted."""


class EpochTimes:
    """When each epoch of a Headwater job was published; pass it as `on_step`."""

    def __init__(self) -> None:
        self._published: dict[int, float] = {}

    def __call__(self, step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.CLEANED:
            self._published[epoch] = time.perf_counter()

    def rate(self, rows: int, rows_per_epoch: int, warm_up: int = WARM_UP) -> float:
        """Rows per second from the publication of the last epoch of the warm-up to that of the last one with rows."""
        last = -(-rows // rows_per_epoch) - 1
        return (rows - warm_up * rows_per_epoch) / (self._published[last] - self._published[warm_up - 1])


def spark_rate(query: Any) -> float:
    """Rows per second over the batches with rows of a finished Spark query, after the warm-up."""
    batches = [p for p in query.recentProgress if p.numInputRows][WARM_UP:]
    return sum(p.numInputRows for p in batches) / (sum(p.durationMs["triggerExecution"] for p in batches) / 1000)


def print_result(bench: str, peer: str, ours: float, theirs: float) -> None:
    """The last line of a bench: both figures and their ratio, as JSON."""
    result = {"bench": bench, "headwater": round(ours, 1), peer: round(theirs, 1), "ratio": round(ours / theirs, 2)}
    print(json.dumps(result))
