"""The rows of an epoch, brought by many channels, in one order that does not depend on how they arrived.

A row counts with the largest timestamp its channel had reached, so that a row that is out of order does not overtake;
ties go by side, then by channel, then by place in the channel. A backlog thus does not play one split's hour before
another's.
"""

from __future__ import annotations

import numpy as np

from headwater.batch import MIN_TIMESTAMP, Batch, Timestamps, concat
from headwater.graph.nodes import LEFT
from headwater.operators.contract import TwoInputs
from headwater.runtime.payload import Payload


def merge(payloads: list[Payload], *, ordered: bool = True) -> Batch | None:
    """The rows of all channels in one order: by event time, keeping the order within each channel."""
    filled = [p for p in payloads if p.batch is not None]
    if not filled:
        return None
    together = concat([p.batch for p in filled if p.batch is not None])
    if not ordered or len({p.channel for p in filled}) == 1:
        return together
    return together.take(np.argsort(_reached(filled), kind="stable"))


def merge_two(payloads: list[Payload], *, ordered: bool) -> TwoInputs:
    """The rows of both sides, and where order matters, whose turn it is."""
    sides = [[p for p in payloads if p.side == side and p.batch is not None] for side in (LEFT, 1 - LEFT)]
    left, right = (concat([p.batch for p in side if p.batch is not None]) if side else None for side in sides)
    if not ordered or (left is None and right is None):
        return TwoInputs(left, right)
    order = np.argsort(np.concatenate([_reached(side) for side in sides]), kind="stable")
    rows = 0 if left is None else len(left)
    turns = (order >= rows).astype(np.int8)
    return TwoInputs(
        None if left is None else left.take(order[turns == 0]),
        None if right is None else right.take(order[turns == 1] - rows),
        turns,
    )


def _reached(payloads: list[Payload]) -> Timestamps:
    """For each row, the largest timestamp that its channel had reached."""
    parts = [np.empty(0, np.int64)]
    channel, highest = None, MIN_TIMESTAMP
    for payload in payloads:
        assert payload.batch is not None
        if payload.channel != channel:
            channel, highest = payload.channel, MIN_TIMESTAMP
        part = np.maximum(np.maximum.accumulate(payload.batch.timestamps), highest)
        parts.append(part)
        highest = int(part[-1])
    return np.concatenate(parts)
