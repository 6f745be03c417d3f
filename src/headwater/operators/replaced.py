"""Rows by key of which some are replaced, as a changelog tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import Batch, Timestamps
from headwater.data.row_kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from headwater.operators.join.contents import equal_rows
from headwater.state.columns import Places


@dataclass(frozen=True)
class Replaced:
    """The rows of some keys before and after an epoch."""

    places: Places
    """Which of the keys had a row."""
    before: pa.Table
    """The rows that those had."""
    after: pa.Table
    """A row for each key, which counts where the key has one."""
    is_there: npt.NDArray[np.bool_]
    """Which of the keys have a row now."""

    def told(self, timestamps: Timestamps, last: Places, *, sends_before: bool) -> Batch:
        """The changes, in the order of the keys' last rows and with their times; none where a row is what it was."""
        count, is_there = len(self.after), self.is_there
        was, at = np.zeros(count, np.bool_), np.zeros(count, np.int64)
        was[self.places], at[self.places] = True, np.arange(len(self.places))
        both = np.flatnonzero(was & is_there)
        changed = np.ones(count, np.bool_)
        changed[both] = ~equal_rows(self.before.take(pa.array(at[both])), self.after.take(pa.array(both)))
        takes = np.flatnonzero(was & changed & (sends_before | ~is_there))
        gives = np.flatnonzero(is_there & changed)
        table = pa.concat_tables([self.before.take(pa.array(at[takes])), self.after.take(pa.array(gives))])
        kinds = np.concatenate(
            [np.where(is_there[takes], UPDATE_BEFORE, DELETE), np.where(was[gives], UPDATE_AFTER, INSERT)]
        )
        of = last[np.concatenate([takes, gives])]
        return Batch(table, timestamps[of], kinds=kinds.astype(np.int8)).take(np.argsort(of, kind="stable"))
