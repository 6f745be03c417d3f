"""State as it can be looked at from outside: every entry of a step's state at one epoch, by key or as a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.rows import decode, encode
from headwater.errors import StateError
from headwater.expiry import WRITTEN
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import shown
from headwater.task.host import LevelHost


class StateView:
    """A state at an epoch. It does not change; ask the job for another one to see what came after."""

    def __init__(self, step: str, name: str, epoch: int, table: pa.Table) -> None:
        self.step, self.name, self.epoch = step, name, epoch
        self._table = table.combine_chunks()

    def table(self) -> pa.Table:
        """All entries."""
        return self._table

    def get(self, key: Any, default: Any = None) -> Any:
        """What is kept for a key: a value, a list, a dict, or for steps that keep rows the rows, each as a dict.

        Several columns that make a key are given as a tuple or dict; a window is a tuple of key, start and end in ms.
        """
        found = self._of(key)
        found = found.drop_columns([time.name for time in WRITTEN.values() if time.name in found.column_names])
        names = found.column_names
        if not len(found):
            return default
        if "entry" in names:
            return dict(zip(decode(found["entry"]), decode(found["value"]), strict=True))
        if "index" in names:
            return decode(found["value"])
        if names == ["key", "value"]:
            return decode(found["value"])[0]
        return found.drop_columns(["key"]).to_pylist()

    def _of(self, key: Any) -> pa.Table:
        if "key" not in self._table.column_names:
            raise StateError.misused(self.step, f"state {self.name!r} holds rows, not a value by key", "use .table()")
        column = self._table["key"].combine_chunks()
        wanted = encode([key], pa.field("key", column.type), f"{self.step}, state {self.name!r}")
        return self._table.filter(_equals(column, wanted))

    def __len__(self) -> int:
        """The number of entries."""
        return len(self._table)

    def __repr__(self) -> str:
        return f"<state {self.step}/{self.name} at epoch {self.epoch}: {len(self)} entries>"


def view_of(hosts: Sequence[LevelHost], step: str, name: str, epoch: int) -> StateView:
    """A state of a step on all subtasks of its level."""
    tables = [host.tables()[step, name] for host in hosts]
    return StateView(step, name, epoch, pa.concat_tables([shown(table.dump(), table.spread.key) for table in tables]))


def _equals(column: pa.Array, wanted: pa.Array) -> pa.Array:
    """Which values of a column equal a value; nulls equal each other."""
    if not wanted[0].is_valid:
        return column.is_null()
    if not pa.types.is_struct(column.type):
        return pc.equal(column, wanted[0]).fill_null(fill_value=False)
    fields = [_equals(*pair) for pair in zip(column.flatten(), wanted.flatten(), strict=True)]
    return reduce(pc.and_, fields, column.is_valid())


def level_of_state(plan: JobPlan, step: str, name: str) -> int:
    """The level that has a state; refuses one that is not there."""
    known = {}
    for level in range(1, plan.depth + 1):
        known.update(dict.fromkeys(LevelHost.blank(plan, level).tables(), level))
    if (step, name) not in known:
        raise SavepointError.no_state(
            f"job {plan.graph.name!r}", step, name, [f"{uid}/{state}" for uid, state in known]
        )
    return known[step, name]
