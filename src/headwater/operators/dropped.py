"""What a step drops because it is late: counted, and of the newest rows as much as is shown.

Nothing is looked at while no row is late. Then a call costs the conversion of a few rows, however many are late; no row
can fail it, and none can fill the report that takes them to the driver.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, Batch, Timestamps
from headwater.data.rows import decode
from headwater.errors import RowError
from headwater.graph.edges import Key
from headwater.late_rows import SHOWN, LateRow
from headwater.operators.keys import key_arrays
from headwater.state.columns import Places

_ROW_CHARACTERS, _KEY_CHARACTERS = 400, 100
_PARTS = 20
"""So much is shown of a list, a map or an object."""
_DECODED_BYTES = 256 << 10
"""Of large rows fewer are shown: they would be turned into Python values only to be cut."""


class _Seen(NamedTuple):
    """A late row before it is a text."""

    timestamp_ms: int
    watermark_ms: int
    key: Any
    values: Any
    rows: int = 1

    def shown(self) -> LateRow:
        """As it travels to the driver."""
        late_by_ms = None if self.watermark_ms == MAX_TIMESTAMP else self.watermark_ms - self.timestamp_ms
        key, row = _text(self.key, _KEY_CHARACTERS), _text(self.values, _ROW_CHARACTERS)
        return LateRow(self.timestamp_ms, late_by_ms, key, row, self.rows)


class DroppedRows:
    """The late rows that go nowhere, since they were last asked for."""

    def __init__(self) -> None:
        self._count = 0
        self._newest: deque[_Seen] = deque(maxlen=SHOWN)

    def add(self, batch: Batch, late: Places, watermark_ms: int, key: Key) -> None:
        """The rows of a batch that are at these places."""
        self._count += len(late)
        some = batch.take(late[-SHOWN:])
        while len(some) > 1 and some.table.nbytes > _DECODED_BYTES:
            some = some.take(np.arange(len(some) // 2, len(some)))
        keys = _keys(key.columns, key_arrays(some, key))
        rows = _objects(some.table.column_names, some.table.columns)
        self._newest += map(_Seen, some.timestamps.tolist(), repeat(watermark_ms), keys, rows)

    def add_row(self, key: Any, row: Any, timestamp_ms: int, watermark_ms: int) -> None:
        """One row, as functions see it."""
        self._count += 1
        self._newest.append(_Seen(timestamp_ms, watermark_ms, key, row))

    def add_combined(self, keys: pa.Table, starts: Timestamps, rows: Timestamps, watermark_ms: int) -> None:
        """Rows that were combined: for each key and slice of time, where that starts, how many there were."""
        self._count += int(rows.sum())
        some = keys.slice(max(0, len(keys) - SHOWN))
        of_keys = _keys(some.column_names, some.columns)
        counts = rows[-SHOWN:].tolist()
        self._newest += map(_Seen, starts[-SHOWN:].tolist(), repeat(watermark_ms), of_keys, repeat(None), counts)

    def count(self, rows: int) -> None:
        """Rows of which no more is shown than their number."""
        self._count += rows

    def take_count(self) -> int:
        """How many were dropped."""
        count, self._count = self._count, 0
        return count

    def take_newest(self) -> tuple[LateRow, ...]:
        """Those to show, the newest last."""
        if not self._newest:
            return ()
        newest = tuple(seen.shown() for seen in self._newest)
        self._newest.clear()
        return newest


def _keys(names: Iterable[str], columns: list[Any]) -> Iterable[Any]:
    """The key of each row: its value, or an object of several; none where there is no column."""
    if not columns:
        return repeat(None)
    return _values(columns[0]) if len(columns) == 1 else _objects(names, columns)


def _objects(names: Iterable[str], columns: list[Any]) -> Iterable[dict[str, Any]]:
    names = list(names)
    return (dict(zip(names, row, strict=True)) for row in zip(*map(_values, columns), strict=True))


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The Python values of a column, or what can be said of those that Python has none for, as of years after 9999."""
    try:
        return decode(column)
    except (RowError, ValueError, OverflowError):
        try:
            return column.cast(pa.string()).to_pylist()  # type: ignore[no-any-return]
        except pa.ArrowException:
            return [f"({column.type} that Python has no value for)"] * len(column)


def _text(value: Any, characters: int) -> str | None:
    """A value as JSON, cut where it is long."""
    if value is None:
        return None
    text = json.dumps(_short(value, characters), ensure_ascii=False)
    if not text.isprintable():  # a terminal and a page show what is there, and do nothing that it says
        text = "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)
    return text if len(text) <= characters else f"{text[: characters - 1]}…"


def _short(value: Any, characters: int) -> Any:
    """A value that JSON has a form for, and no more of it than may be shown."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value[:characters]
    if isinstance(value, bytes):
        return value[:characters].hex()
    if isinstance(value, date):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        parts = list(value.items())[:_PARTS] if len(value) > _PARTS else value.items()
        return {str(name)[:characters]: _short(one, characters) for name, one in parts}
    if isinstance(value, list | tuple):
        return [_short(one, characters) for one in value[:_PARTS]]
    return str(value)[:characters]
