"""The valve: the watermark of a step as the minimum over its input channels, which never goes back."""

from __future__ import annotations

import pyarrow as pa

from headwater.batch import MIN_TIMESTAMP
from headwater.rows import decode

_SCHEMA = pa.schema([pa.field("channel", pa.string()), pa.field("watermark", pa.int64())])


class Valve:
    """Keeps one watermark per channel. It is state: a restart never turns late rows into timely ones."""

    def __init__(self) -> None:
        self.clear_all()

    def clear_all(self) -> None:
        self._channels: dict[str, int] = {}
        self._changed: dict[str, None] = {}

    def update(self, channel: str, watermark_ms: int) -> None:
        """Take a channel's watermark; one that is behind what the channel said before is ignored."""
        known = self._channels.get(channel)
        if known is None or watermark_ms > known:
            self._channels[channel] = watermark_ms
            self._changed[channel] = None

    def watermark(self) -> int:
        """The minimum over all channels."""
        return min(self._channels.values(), default=MIN_TIMESTAMP)

    def changes(self) -> pa.Table | None:
        if not self._changed:
            return None
        table = self._table({channel: self._channels[channel] for channel in self._changed})
        self.forget_changes()
        return table

    def forget_changes(self) -> None:
        self._changed = {}

    def dump(self) -> pa.Table:
        return self._table(self._channels)

    def _table(self, channels: dict[str, int]) -> pa.Table:
        return pa.table([list(channels), list(channels.values())], schema=_SCHEMA)

    def apply(self, changes: pa.Table) -> None:
        self._channels.update(zip(decode(changes["channel"]), decode(changes["watermark"]), strict=True))

    def __len__(self) -> int:
        return len(self._channels)
