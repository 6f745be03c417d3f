"""Channels that are quiet: since when they had no rows, for strategies that call them idle after a while.

A source knows of its splits from the offsets. Of a step that sets event time in the middle of a job those know who hear it.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.data.rows import decode
from headwater.state.spread import Spread, Subtasks
from headwater.state.table import StateTable

_SCHEMA = pa.schema([pa.field("channel", pa.string()), pa.field("rows_ms", pa.int64())])


class SameChannels(Spread):
    """Every subtask knows of all channels; where they do not agree, the newest rows count."""

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        quiet = Quiet()
        for table in tables:
            for channel, rows_ms in zip(decode(table["channel"]), decode(table["rows_ms"]), strict=True):
                for name in to.channels(channel):
                    quiet._rows_ms[name] = max(rows_ms, quiet._rows_ms.get(name, rows_ms))
        quiet._rows_ms = dict(sorted(quiet._rows_ms.items()))
        return [quiet.dump()] * to.count


class Quiet:
    """When each channel last had rows, in processing time. It is state: a restart does not start the wait anew."""

    spread: Spread = SameChannels()

    def __init__(self) -> None:
        self.clear_all()

    def tables(self) -> dict[str, StateTable]:
        return {"@channels.quiet": self}

    def is_idle(self, channel: str, now_ms: int, idle_ms: int, *, is_quiet: bool) -> bool:
        """Take what a channel says of an epoch, and tell whether it had no rows for so long by now."""
        rows_ms = self._rows_ms.get(channel)
        if is_quiet and rows_ms is not None:
            return now_ms - rows_ms >= idle_ms
        self._rows_ms[channel] = now_ms  # one that never had rows is quiet from when it is first heard
        self._changed[channel] = None
        return False

    def clear_all(self) -> None:
        self._rows_ms: dict[str, int] = {}
        self.forget_changes()

    def forget_changes(self) -> None:
        self._changed: dict[str, None] = {}

    def changes(self) -> pa.Table | None:
        if not self._changed:
            return None
        table = self._table(list(self._changed))
        self.forget_changes()
        return table

    def dump(self) -> pa.Table:
        return self._table(list(self._rows_ms))

    def _table(self, names: list[str]) -> pa.Table:
        return pa.table([names, [self._rows_ms[name] for name in names]], schema=_SCHEMA)

    def apply(self, changes: pa.Table) -> None:
        self._rows_ms.update(zip(decode(changes["channel"]), decode(changes["rows_ms"]), strict=True))

    def __len__(self) -> int:
        return len(self._rows_ms)
