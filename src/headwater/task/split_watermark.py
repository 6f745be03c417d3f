"""The watermark of one split in one epoch, as the source's strategy makes it from the rows of the epoch."""

from __future__ import annotations

import operator
from typing import Protocol

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch
from headwater.errors import GraphError
from headwater.graph.nodes import SourceNode
from headwater.operators.stateless.functions import rows_of
from headwater.operators.user_code import user_code_failed
from headwater.watermarks import WatermarkGenerator

_LAST_BEFORE_END = MAX_TIMESTAMP - 1
"""What a strategy can say at most: the maximum is the end of input, which is not the strategy's to say."""


class SplitWatermark(Protocol):
    """Sees the rows of a split in an epoch and says how far event time has come with them."""

    def see(self, batch: Batch) -> None:
        """Take rows, in order."""

    def end(self) -> int:
        """The watermark after the epoch's rows; the minimum when there is nothing to say."""


def split_watermark(node: SourceNode, uid: str) -> SplitWatermark:
    """What makes the watermark of one split for one epoch."""
    return LargestTimestamp(node.watermarks.delay_ms) if node.watermarks.generator is None else Generated(node, uid)


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

    def __init__(self, node: SourceNode, uid: str) -> None:
        self._node, self._uid = node, uid
        self._generator: WatermarkGenerator | None = None
        self._highest = MIN_TIMESTAMP

    def see(self, batch: Batch) -> None:
        if self._generator is None:
            self._generator = self._made()
        on_event, timestamp = self._generator.on_event, None
        rows = rows_of(batch.table, self._node.schema.row)
        try:
            for row, timestamp in zip(rows, batch.timestamps.tolist(), strict=True):
                self._take(on_event(row, timestamp))
        except Exception as error:
            raise user_code_failed(error, self._uid, timestamp=timestamp) from None

    def end(self) -> int:
        if self._generator is not None:
            try:
                self._take(self._generator.on_periodic())
            except Exception as error:
                raise user_code_failed(error, self._uid) from None
        return self._highest

    def _made(self) -> WatermarkGenerator:
        factory = self._node.watermarks.generator
        assert factory is not None
        try:
            generator = factory()
        except Exception as error:
            raise user_code_failed(error, self._uid) from None
        if not isinstance(generator, WatermarkGenerator):
            raise GraphError.bad_argument(
                self._uid, "needs a WatermarkGenerator from its factory", generator, "return an instance of a subclass"
            )
        return generator

    def _take(self, said: int | None) -> None:
        if said is not None:
            self._highest = max(self._highest, min(operator.index(said), _LAST_BEFORE_END))
