"""Rows in flight: what a step has been sent and has not handled yet, as part of its state. See docs/concepts/unaligned.md.

In an unaligned epoch a step handles as many rows as its budget says. The rest waits in the order it came in and is handled
first in the next epoch. The budget was stored by the epoch before, so an epoch that is computed again, however fast, is
cut at the same row.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from headwater.data.rows import decode
from headwater.errors import JobError
from headwater.state.shelf import IN_MEMORY, Shelf
from headwater.state.spread import Spread, Subtasks
from headwater.state.table import PUT, REMOVE, StateTable
from headwater.task.merging import shares
from headwater.task.payload import Payload, decode_payload, encode_payload

FIRST_BUDGET = 1_000
"""Rows of a step's first epoch: with a millisecond a row, the checkpoint interval that a job has by default."""
GROWTH = 4
"""How many times larger a budget may get from epoch to epoch: a step that is fast has a million rows in the sixth."""
LARGEST_BUDGET = 1 << 40
"""More than any epoch has, and far from what a 64-bit number holds."""

_BUDGET = -1
"""Stands for the budget in the table; what waits is numbered from 0."""
_SCHEMA = pa.schema(
    [
        pa.field("op", pa.int8()),
        pa.field("number", pa.int64()),
        pa.field("rows", pa.int64()),  # the budget; of what waits, how many rows at its start have been handled
        pa.field("data", pa.large_binary()),  # null where it is known and only `rows` changes
    ]
)

Channel = tuple[str, int]
"""A channel and the input of the step that it leads to."""


def next_budget(budget: int, rows: int, seconds: float, target_ms: int) -> int:
    """The rows that would have taken the target, by the speed of this epoch. It falls at once and grows in steps."""
    if rows == 0:
        return budget
    in_time = int(rows * target_ms / 1000 / seconds) if seconds > 0 else LARGEST_BUDGET
    return max(1, min(in_time, GROWTH * budget, LARGEST_BUDGET))


class InFlight:
    """What waits at one step on one subtask, and its budget. A table of state that holds payloads as they were encoded.

    Rows are handled in the order that aligned epochs would have: epoch of arrival by epoch of arrival, and within one as
    they are merged. A channel's watermark waits for the rows before it, and for nothing else.
    """

    def __init__(self, step: str, shelf: Shelf = IN_MEMORY) -> None:
        self._step, self._shelf = step, shelf
        self.spread: Spread = _NothingWaits(step)
        self._kept: dict[int, _Kept] = {}
        self._budget: int | None = None
        self.forget_changes()

    @property
    def budget(self) -> int:
        """How many rows an unaligned epoch handles."""
        return FIRST_BUDGET if self._budget is None else self._budget

    @property
    def rows(self) -> int:
        """How many rows wait."""
        return sum(_size(kept.payload) for kept in self._kept.values())

    def check_nothing_waits(self) -> None:
        """Refuse to give up rows in flight; a budget can be found anew."""
        if self._kept:
            raise _cannot_move(self._step)

    def is_in_use(self, *, unaligned: bool) -> bool:
        """Whether an epoch has anything to do with it; an aligned one has when the last one was not."""
        return unaligned or bool(self._kept)

    def tables(self) -> dict[str, StateTable]:
        return {"@inflight": self}

    def admit(self, arrived: list[Payload], *, unaligned: bool, ordered: bool) -> list[list[Payload]]:
        """What is handled in this epoch, in a list for each epoch in which it came, oldest first. The rest waits."""
        left = self.budget if unaligned else sys.maxsize
        waiting: set[Channel] = set()
        admitted = []
        for _, numbers in groupby(list(self._kept), lambda number: self._kept[number].payload.facts.epoch):
            held = list(numbers)
            due = []
            payloads = [self._kept[number].payload for number in held]
            for number, (now, later) in zip(held, _divided(payloads, left, waiting, ordered=ordered), strict=True):
                if now is not None:
                    due.append(now)
                    self._shorten(number, now, later)
            admitted.append(due)
            left -= sum(map(_size, due))
        parts = list(_divided(arrived, left, waiting, ordered=ordered))
        first = max(self._kept, default=-1) + 1
        for number, later in enumerate((later for _, later in parts if later is not None), first):
            self._keep(number, encode_payload(later))
            self._added.append(number)
        return [*admitted, [now for now, _ in parts if now is not None]]

    def _keep(self, number: int, data: bytes, skipped: int = 0) -> None:
        kept = self._kept[number] = _Kept(data, skipped)
        self._shelf.put(kept)

    def channels(self) -> list[Channel]:
        """The channels of which something waits, in the order it came in."""
        return list(dict.fromkeys((kept.payload.channel, kept.payload.side) for kept in self._kept.values()))

    def measured(self, rows: int, seconds: float, target_ms: int) -> None:
        """Take the time that the rows of this epoch took; all it decides is the budget of the next one."""
        budget = next_budget(self.budget, rows, seconds, target_ms)
        if budget != self._budget:
            self._budget = budget
            self._has_new_budget = True

    def _shorten(self, number: int, handled: Payload, later: Payload | None) -> None:
        """Drop what is handled of what waits under a number."""
        if later is None:
            del self._kept[number]
            self._removed.append(number)
        else:
            kept = self._kept[number]
            kept.skip(kept.skipped + _size(handled), later)
            self._shortened.append(number)

    # -- a table of state ---------------------------------------------------------------------------------------------

    def clear_all(self) -> None:
        self._kept, self._budget = {}, None
        self.forget_changes()

    def forget_changes(self) -> None:
        self._added: list[int] = []
        self._shortened: list[int] = []
        self._removed: list[int] = []
        self._has_new_budget = False

    def changes(self) -> pa.Table | None:
        """What waits is written once; when some of it is handled, how much."""
        rows: list[_Row] = [(REMOVE, number, 0, None) for number in self._removed]
        rows += [(PUT, _BUDGET, self.budget, None)] * self._has_new_budget
        rows += [(PUT, number, self._kept[number].skipped, None) for number in self._shortened]
        rows += self._rows(self._added)
        self.forget_changes()
        return _table(rows) if rows else None

    def dump(self) -> pa.Table:
        budget: list[_Row] = [] if self._budget is None else [(PUT, _BUDGET, self._budget, None)]
        return _table([*budget, *self._rows(self._kept)])

    def _rows(self, numbers: Iterable[int]) -> list[_Row]:
        return [(PUT, number, self._kept[number].skipped, bytes(self._kept[number].data)) for number in numbers]

    def apply(self, changes: pa.Table) -> None:
        for op, number, rows, data in zip(*(decode(changes[name]) for name in _SCHEMA.names), strict=True):
            if number == _BUDGET:
                self._budget = rows
            elif op == REMOVE:
                del self._kept[number]
            elif data is None:
                self._kept[number].skip(rows)
            else:
                self._keep(number, data, rows)

    def __len__(self) -> int:
        return len(self._kept) + (self._budget is not None)


_Row = tuple[int, int, int, bytes | None]


class _Kept:
    """A payload that waits: its bytes, which are stored once, and how many of its rows have been handled since.

    The rows are always read from the bytes, so that a copy that was rebuilt has the same ones down to the padding.
    """

    __slots__ = ("__weakref__", "_payload", "data", "skipped")

    def __init__(self, data: bytes, skipped: int) -> None:
        self.data: bytes | memoryview = data
        self.skip(skipped)

    def skip(self, rows: int, left: Payload | None = None) -> None:
        """So many rows have been handled since it came, and this is left, if it is at hand."""
        self.skipped, self._payload = rows, left

    @property
    def payload(self) -> Payload:
        """What is left of it."""
        if self._payload is None:
            self._payload = _sliced(decode_payload(self.data), self.skipped)
        return self._payload

    def columns(self) -> list[pa.Table]:
        ends = pa.py_buffer(np.array([0, len(self.data)], np.int64))
        data = pa.Array.from_buffers(pa.large_binary(), 1, [None, ends, pa.py_buffer(self.data)])
        return [pa.table([data], names=["data"])]

    def moved(self, columns: list[pa.Table]) -> None:
        self.data = memoryview(columns[0].column(0).chunk(0)[0].as_buffer()).cast("B")
        self._payload = None


class _NothingWaits(Spread):
    """Budgets move, rows in flight do not: what they are for and the channels they came on are others afterwards."""

    def __init__(self, step: str) -> None:
        self.step = step

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        together = pa.concat_tables(tables)
        if max(decode(together["number"])) != _BUDGET:
            raise _cannot_move(self.step)
        return [_table([(PUT, _BUDGET, min(decode(together["rows"])), None)])] * to.count


def _cannot_move(step: str) -> JobError:
    return JobError.not_supported(
        f"step {step!r} has rows in flight, which cannot move to other subtasks",
        "take a savepoint, which waits for them, and start with the other parallelism from there",
    )


def _divided(
    payloads: list[Payload], rows: int, waiting: set[Channel], *, ordered: bool
) -> Iterator[tuple[Payload | None, Payload | None]]:
    """Of each payload, in order, what is among the first rows and what is not; adds to the channels that wait."""
    for payload, count in zip(payloads, shares(payloads, rows, ordered=ordered), strict=True):
        channel, size = (payload.channel, payload.side), _size(payload)
        if count < size:
            waiting.add(channel)
            yield (None, payload) if count == 0 else (_sliced(payload, 0, count), _sliced(payload, count))
        else:
            yield (None, payload) if size == 0 and channel in waiting else (payload, None)


def _sliced(payload: Payload, start: int, count: int = sys.maxsize) -> Payload:
    batch = payload.batch
    if batch is None or (start == 0 and count >= len(batch)):
        return payload
    return replace(payload, batch=batch.slice(start, min(count, len(batch) - start)))


def _size(payload: Payload) -> int:
    return 0 if payload.batch is None else len(payload.batch)


def _table(rows: list[_Row]) -> pa.Table:
    columns = [list(column) for column in zip(*rows, strict=True)]
    return pa.table(columns, schema=_SCHEMA) if columns else _SCHEMA.empty_table()
