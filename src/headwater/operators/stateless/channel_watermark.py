"""The watermark of one channel in one epoch, as a strategy makes it from the rows of the epoch.

A channel is a split of a source, or what comes through a step that sets event time anew, on one subtask.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Protocol

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from headwater.data.rows import Row
from headwater.errors import GraphError
from headwater.operators.stateless.functions import rows_of
from headwater.operators.user_code import user_code_failed
from headwater.watermarks import WatermarkGenerator, Watermarks

_LAST_BEFORE_END = MAX_TIMESTAMP - 1
"""What a strategy can say at most: the maximum is the end of input, which is not the strategy's to say."""


class ChannelWatermark(Protocol):
    """Sees the rows of a channel in an epoch and says how far event time has come with them."""

    def see(self, batch: Batch) -> None:
        """Take rows, in order."""

    def end(self) -> int:
        """The watermark after the epoch's rows; the minimum when there is nothing to say."""


def channel_watermark(strategy: Watermarks, step: str, row: type[Row]) -> ChannelWatermark:
    """What makes the watermark of one channel for one epoch."""
    if strategy.generator is None:
        return LargestTimestamp(strategy.delay_ms)
    return Generated(strategy.generator, step, row)


class LargestTimestamp:
    """Stays a fixed delay behind the largest timestamp."""

    def __init__(self, delay_ms: int) -> None:
        self._delay_ms, self._highest = delay_ms, MIN_TIMESTAMP

    def see(self, batch: Batch) -> None:
        self._highest = max(self._highest, int(batch.timestamps.max()))

    def end(self) -> int:
        if self._highest == MIN_TIMESTAMP:
            return MIN_TIMESTAMP
        return max(MIN_TIMESTAMP, self._highest - self._delay_ms - 1)


class Generated:
    """Asks a user's generator, which is made with the first rows and gone with the epoch."""

    def __init__(self, factory: Callable[[], WatermarkGenerator], step: str, row: type[Row]) -> None:
        self._factory, self._step, self._row = factory, step, row
        self._generator: WatermarkGenerator | None = None
        self._highest = MIN_TIMESTAMP

    def see(self, batch: Batch) -> None:
        if self._generator is None:
            self._generator = self._made()
        on_event, timestamp = self._generator.on_event, None
        rows = rows_of(batch.table, self._row)
        try:
            for row, timestamp in zip(rows, batch.timestamps.tolist(), strict=True):
                self._take(on_event(row, timestamp))
        except BaseException as error:
            raise user_code_failed(error, self._step, timestamp=timestamp) from None

    def end(self) -> int:
        if self._generator is not None:
            try:
                self._take(self._generator.on_periodic())
            except BaseException as error:
                raise user_code_failed(error, self._step) from None
        return self._highest

    def _made(self) -> WatermarkGenerator:
        try:
            generator = self._factory()
        except BaseException as error:
            raise user_code_failed(error, self._step) from None
        if not isinstance(generator, WatermarkGenerator):
            raise GraphError.bad_argument(
                self._step, "needs a WatermarkGenerator from its factory", generator, "return an instance of a subclass"
            )
        return generator

    def _take(self, said: int | None) -> None:
        if said is not None:
            self._highest = max(self._highest, min(operator.index(said), _LAST_BEFORE_END))
