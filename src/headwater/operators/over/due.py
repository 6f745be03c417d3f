"""Rows whose turn has come, by partition."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch, Timestamps
from headwater.graph.edges import Key
from headwater.operators.grouping import Codes, group
from headwater.operators.join.keys import JoinKeys, keys_in
from headwater.operators.keys import keys_of
from headwater.state.columns import Places


@dataclass(frozen=True)
class Due:
    """Rows partition by partition, each in the order of time, then of arrival. There is at least one."""

    rows: pa.Table
    times: Timestamps
    groups: Codes
    """The partition of each row, numbered from 0."""
    key: Key

    @classmethod
    def of(cls, rows: pa.Table, times: Timestamps, key: Key) -> tuple[Due, Places]:
        """Rows that come in the order of time; and where each of them is."""
        codes = group([rows.column(name) for name in key.columns], len(rows)).codes
        order = np.argsort(codes, kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return cls(rows.take(pa.array(order)), times[order], codes[order], key), place

    @cached_property
    def first(self) -> Places:
        """The first row of each partition."""
        return np.flatnonzero(np.diff(self.groups, prepend=-1))

    @cached_property
    def last(self) -> Places:
        """The last row of each partition."""
        return np.append(self.first[1:], len(self.groups)) - 1

    @property
    def keys(self) -> list[Any]:
        """The key of each partition."""
        firsts = self.rows.take(pa.array(self.first))
        return list(keys_of(Batch(firsts, self.times[self.first]), self.key))

    def columns(self, names: list[str]) -> tuple[pa.Table, JoinKeys]:
        """Some columns, with those of the key among them, and the keys of rows."""
        rows = self.rows.select(names)
        return rows, keys_in(rows, list(self.key.columns))

    @cached_property
    def is_new_time(self) -> npt.NDArray[np.bool_]:
        """Which rows are of another time than the one before, or the first of their partition."""
        found: npt.NDArray[np.bool_] = np.diff(self.times, prepend=0) != 0
        found[self.first] = True
        return found

    def last_of_time(self) -> Places:
        """For each row, the last one of its partition and its time."""
        ends = np.append(np.flatnonzero(self.is_new_time)[1:], len(self.times)) - 1
        found: Places = ends[np.cumsum(self.is_new_time) - 1]
        return found
