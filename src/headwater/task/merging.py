"""The rows of an epoch, brought by many channels, in one order that does not depend on how they arrived.

A row counts with the largest timestamp its channel had reached, so that a row that is out of order does not overtake;
ties go by side, then by channel, then by place in the channel. A backlog thus does not play one split's hour before
another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from headwater.data.batch import MIN_TIMESTAMP, Batch, Timestamps, concat
from headwater.graph.edges import LEFT
from headwater.operators.contract import TwoInputs
from headwater.task.payload import Payload


def merge(payloads: list[Payload], *, ordered: bool = True) -> Batch | None:
    """The rows of all channels in one order: by event time, keeping the order within each channel."""
    filled = [p for p in payloads if p.batch is not None]
    if not filled:
        return None
    together = concat([p.batch for p in filled if p.batch is not None])
    if not ordered or len({p.channel for p in filled}) == 1:
        return together
    return together.take(np.argsort(_reached(_times(filled)), kind="stable"))


def merge_two(payloads: list[Payload], *, ordered: bool) -> TwoInputs:
    """The rows of both sides, and where order matters, whose turn it is."""
    sides = [[p for p in payloads if p.side == side and p.batch is not None] for side in (LEFT, 1 - LEFT)]
    left, right = (concat([p.batch for p in side if p.batch is not None]) if side else None for side in sides)
    if not ordered or (left is None and right is None):
        return TwoInputs(left, right)
    order = np.argsort(np.concatenate([_reached(_times(side)) for side in sides]), kind="stable")
    rows = 0 if left is None else len(left)
    turns = (order >= rows).astype(np.int8)
    return TwoInputs(
        None if left is None else left.take(order[turns == 0]),
        None if right is None else right.take(order[turns == 1] - rows),
        turns,
    )


def shares(payloads: list[Payload], count: int, *, ordered: bool) -> list[int]:
    """How many rows of each payload are among the first `count` of all, in the order in which they are merged.

    They are the first ones of each channel. What is left, merged by itself, keeps the order it would have come in: a
    channel whose largest timestamp is gone with the first rows is the next one in turn, whatever it has reached since.
    """
    sizes = [0 if p.batch is None else len(p.batch) for p in payloads]
    if sum(sizes) <= count:
        return sizes
    if not ordered or count == 0:
        return np.diff(np.minimum(np.cumsum(sizes), count), prepend=0).tolist()  # type: ignore[no-any-return]
    times, owners = _candidates(payloads, count)
    first = np.argsort(np.concatenate([_reached(side) for side in times]), kind="stable")[:count]
    return np.bincount(owners[first], minlength=len(payloads)).tolist()  # type: ignore[no-any-return]


def _candidates(payloads: list[Payload], count: int) -> tuple[list[list[_Times]], npt.NDArray[np.int64]]:
    """By side, the rows that can be among the first `count`, of a channel no more than so many; and of each, its payload."""
    times: list[list[_Times]] = [[], []]
    owners: list[npt.NDArray[np.int64]] = []
    for side in (LEFT, 1 - LEFT):
        seen: dict[str, int] = {}
        for place, payload in enumerate(payloads):
            room = count - seen.get(payload.channel, 0)
            if payload.side != side or payload.batch is None or room <= 0:
                continue
            part = payload.batch.timestamps[:room]
            seen[payload.channel] = seen.get(payload.channel, 0) + len(part)
            times[side].append((payload.channel, part))
            owners.append(np.full(len(part), place, np.int64))
    return times, np.concatenate(owners)


_Times = tuple[str, Timestamps]
"""A channel and the timestamps of some of its rows."""


def _times(payloads: list[Payload]) -> Iterator[_Times]:
    return ((p.channel, p.batch.timestamps) for p in payloads if p.batch is not None)


def _reached(rows: Iterable[_Times]) -> Timestamps:
    """For each row, the largest timestamp that its channel had reached."""
    parts = [np.empty(0, np.int64)]
    channel, highest = None, MIN_TIMESTAMP
    for origin, timestamps in rows:
        if origin != channel:
            channel, highest = origin, MIN_TIMESTAMP
        part = np.maximum(np.maximum.accumulate(timestamps), highest)
        parts.append(part)
        highest = int(part[-1])
    return np.concatenate(parts)
