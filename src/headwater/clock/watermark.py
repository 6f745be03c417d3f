"""The valve: the watermark of a step as the minimum over its input channels that are not idle. It never goes back."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.data.rows import decode
from headwater.state.spread import Spread, Subtasks
from headwater.state.table import StateTable

COUNTS, IDLE, RESUMES = 0, 1, 2
"""What a channel is: one that counts, one that is idle, or one that was idle and has not caught up yet."""

_OUTPUT = ""
"""Stands for the valve's own watermark in its table; channels have names."""
_PLAIN = pa.schema([pa.field("channel", pa.string()), pa.field("watermark", pa.int64())])
_STATUS = pa.field("status", pa.int8())
"""A column of tables in which some channel does not count; a table without it is one in which all do."""


class OneWatermark(Spread):
    """What all subtasks know of the channels, as one: nothing is later or earlier for having moved.

    A step's channels are made anew, one for each subtask it will run on, so that nobody waits for one that is gone. Where
    the valves do not agree, the slowest counts.
    """

    def deal(self, tables: Sequence[pa.Table], to: Subtasks) -> list[pa.Table]:
        said: dict[str, list[tuple[int, int]]] = {}
        old = []
        for table in tables:
            valve = Valve()
            valve.apply(table)
            old.append(valve)
            for channel, state in valve._channels.items():
                for name in to.channels(channel):
                    said.setdefault(name, []).append(state)
        together = Valve()
        for name in sorted(said):
            going = [state for state in said[name] if state[0] != MAX_TIMESTAMP] or said[name]
            status = next(s for s in (COUNTS, RESUMES, IDLE) if s in {status for _, status in going})
            together._channels[name] = (min(at for at, _ in going), status)
        together._output_ms = min(valve._output_ms for valve in old)
        together._stores_output = (
            any(valve._stores_output for valve in old) or together._output_ms != together._lowest()
        )
        return [together.dump()] * to.count


class Valve:
    """Keeps a watermark and a status per channel. It is state: a restart never turns late rows into timely ones.

    An epoch is two acts: `update` for every channel that said something, then `settle`. The result does not depend on the
    order of the updates.
    """

    spread: Spread = OneWatermark()

    def __init__(self, *, is_over_sides: bool = False) -> None:
        """With `is_over_sides` the channels are the inputs of a step, and one that resumes counts at once."""
        self._is_over_sides = is_over_sides
        self.clear_all()

    def tables(self) -> dict[str, StateTable]:
        return {"@channels": self}

    def clear_all(self) -> None:
        self._channels: dict[str, tuple[int, int]] = {}
        self._output_ms = MIN_TIMESTAMP
        self._stores_output = False  # from the first time that it is not the minimum over all channels
        self._changed: dict[str, None] = {}

    def update(self, channel: str, watermark_ms: int, *, idle: bool = False, side: int = 0) -> None:
        """Take what a channel, of any side, says; a watermark behind what the channel said before is ignored.

        A channel that had ended and speaks again, as of a split that was gone and is back, is as one that is new.
        """
        known_ms, status = self._channels.get(channel, (MIN_TIMESTAMP, COUNTS))
        if known_ms == MAX_TIMESTAMP:
            known_ms, status = MIN_TIMESTAMP, COUNTS
        if idle:
            status = IDLE
        elif status == IDLE:
            status = COUNTS if self._is_over_sides else RESUMES
        self._set(channel, max(known_ms, watermark_ms), status)

    def settle(self) -> int:
        """Let the watermark follow the channels, and give it.

        A channel that resumes counts once it has caught up with the watermark. When every channel is idle the watermark
        goes to the largest of them. A channel at its end is left out, and when all are, event time is at its end.
        """
        for channel, (watermark_ms, status) in self._channels.items():
            if status == RESUMES and watermark_ms >= self._output_ms:
                self._set(channel, watermark_ms, COUNTS)
        counting = [at for at, status in self._channels.values() if status == COUNTS and at != MAX_TIMESTAMP]
        if counting:
            self._move_to(min(counting))
        elif self.is_idle():
            self._move_to(max(at for at, _ in self._channels.values() if at != MAX_TIMESTAMP))
        elif self._channels and all(at == MAX_TIMESTAMP for at, _ in self._channels.values()):
            self._move_to(MAX_TIMESTAMP)
        return self._output_ms

    def watermark(self) -> int:
        """Where event time stood when the valve was last settled."""
        return self._output_ms

    def is_idle(self) -> bool:
        """Whether no channel that has not ended is active, so that whoever reads from here need not wait."""
        statuses = [status for at, status in self._channels.values() if at != MAX_TIMESTAMP]
        return bool(statuses) and all(status == IDLE for status in statuses)

    def _set(self, channel: str, watermark_ms: int, status: int) -> None:
        if self._channels.get(channel) != (watermark_ms, status):
            self._channels[channel] = (watermark_ms, status)
            self._changed[channel] = None

    def _move_to(self, watermark_ms: int) -> None:
        stored_before = self._output_ms if self._stores_output else None
        self._output_ms = max(self._output_ms, watermark_ms)
        self._stores_output = self._stores_output or self._output_ms != self._lowest()
        if self._stores_output and self._output_ms != stored_before:
            self._changed[_OUTPUT] = None

    def _lowest(self) -> int:
        return min((at for at, _ in self._channels.values()), default=MIN_TIMESTAMP)

    def changes(self) -> pa.Table | None:
        if not self._changed:
            return None
        table = self._table(list(self._changed))
        self.forget_changes()
        return table

    def forget_changes(self) -> None:
        self._changed = {}

    def dump(self) -> pa.Table:
        return self._table([*self._channels, *([_OUTPUT] if self._stores_output else [])])

    def _table(self, names: list[str]) -> pa.Table:
        found = [(self._output_ms, COUNTS) if name == _OUTPUT else self._channels[name] for name in names]
        table = pa.table([names, [at for at, _ in found]], schema=_PLAIN)
        statuses = [status for _, status in found]
        return table.append_column(_STATUS, pa.array(statuses, _STATUS.type)) if any(statuses) else table

    def apply(self, changes: pa.Table) -> None:
        names, times = decode(changes["channel"]), decode(changes["watermark"])
        statuses = decode(changes["status"]) if _STATUS.name in changes.column_names else [COUNTS] * len(names)
        for name, watermark_ms, status in zip(names, times, statuses, strict=True):
            if name == _OUTPUT:
                self._output_ms, self._stores_output = watermark_ms, True
            else:
                self._channels[name] = (watermark_ms, status)
        if not self._stores_output:
            self._output_ms = self._lowest()

    def __len__(self) -> int:
        return len(self._channels)
