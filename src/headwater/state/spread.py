"""Spreads: how the state of all subtasks becomes that of another number of subtasks.

Every table has one, beside it: by key here, in turn and to all for operator state, channels for a valve.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.state.keys import key_groups, subtasks_of

_TIMED = "@"
"""Stands between a step or source and the step that has set the event time of its rows; no uid has it."""


def timed(channel: str, by: str) -> str:
    """What a channel, or the uid it begins with, is called behind a step that sets event time anew."""
    uid, is_channel, place = channel.partition("/")
    return f"{uid}{_TIMED}{by}{is_channel}{place}"


def set_by(channel: str) -> str | None:
    """The step that has set the event time of a channel's rows, if one has."""
    return channel.partition("/")[0].partition(_TIMED)[2] or None


@dataclass(frozen=True)
class Subtasks:
    """The subtasks that state is dealt out to."""

    count: int
    groups: int
    """The key groups of the job."""
    entries: frozenset[str]
    """The uids of the steps that run on every subtask; other channels are splits of sources."""
    feeders: frozenset[str]
    """The uids of the steps and sources that the step to restore hears from, as its channels begin with them."""

    def channels(self, name: str) -> list[str]:
        """The channels that stand where a channel stood: those of the same step, the same split, or none any more."""
        uid, is_channel, _ = name.partition("/")
        if not is_channel:  # an input of a step that has two
            return [name]
        if uid not in self.feeders:
            return []
        is_entry = uid.partition(_TIMED)[0] in self.entries
        return [f"{uid}/{subtask}" for subtask in range(self.count)] if is_entry else [name]


class Spread(Protocol):
    """Deals a table out. The result depends on the tables alone, and nothing in them is lost."""

    key: tuple[str, ...] = ()
    """The columns that make the key by which rows are dealt out; none where they go by something else."""

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        """A table for each new subtask, of the dumps of the old ones; at least one, in order, the empty ones left out."""

    def groups(self, table: pa.Table, count: int) -> npt.NDArray[np.int64] | None:
        """The key group of each row, of so many; None where rows have no key, so that all tables are needed to deal."""
        return None


class ByKey(Spread):
    """Each row goes to the subtask that owns the group of its key."""

    def __init__(self, names: Sequence[str], key: Callable[[pa.Table], pa.Array | pa.ChunkedArray]) -> None:
        self.key, self._key = tuple(names), key

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        together = pa.concat_tables(tables)
        owners = subtasks_of(key_groups(self._key(together), to.groups), to.groups, to.count)
        return [together.filter(pa.array(owners == subtask)) for subtask in range(to.count)]

    def groups(self, table: pa.Table, count: int) -> npt.NDArray[np.int64] | None:
        return key_groups(self._key(table), count)


class ToFirst(Spread):
    """All rows go to the first subtask: where rows without a key are."""

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        together = pa.concat_tables(tables)
        return [together, *[together.slice(0, 0)] * (to.count - 1)]


class InOneOrder(Spread):
    """Rows that each subtask has numbered, dealt out by another spread under numbers that are unique among all.

    The order of numbers stays; rows of different subtasks with the same number go in the order of these.
    """

    def __init__(self, spread: Spread, numbers: str) -> None:
        self.key, self._spread, self._numbers = spread.key, spread, numbers

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        together = pa.concat_tables(tables)
        ordered = together.take(pa.array(np.argsort(together[self._numbers].to_numpy(), kind="stable")))
        place = ordered.column_names.index(self._numbers)
        numbers = pa.array(np.arange(len(ordered)), pa.int64())
        return self._spread.deal([ordered.set_column(place, ordered.schema.field(place), numbers)], to)

    def groups(self, table: pa.Table, count: int) -> npt.NDArray[np.int64] | None:
        return self._spread.groups(table, count)


BY_KEY: Spread = ByKey(["key"], lambda table: table["key"])
TO_FIRST: Spread = ToFirst()


def by_columns(names: Sequence[str]) -> Spread:
    """The spread of rows whose key is made of these columns; without any, all rows have one."""
    if not names:
        return TO_FIRST
    if len(names) == 1:
        return ByKey(names, lambda table: table[names[0]])
    return ByKey(names, lambda table: table.select(list(names)).combine_chunks().to_struct_array())
