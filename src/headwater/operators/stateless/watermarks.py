"""Event time taken anew: from a column of the rows, with a watermark that follows from them."""

from __future__ import annotations

from headwater.clock.event_time import timestamps_of
from headwater.data.batch import MIN_TIMESTAMP, Batch
from headwater.data.rows import Row
from headwater.errors import RowError
from headwater.graph.nodes import AssignWatermarksNode, DelayWatermarksNode
from headwater.operators.stateless.channel_watermark import channel_watermark
from headwater.operators.stateless.functions import Outputs


class AssignWatermarksOperator:
    """Gives rows their time, and says for each epoch how far event time has come with them."""

    def __init__(self, node: AssignWatermarksNode, step: str, row: type[Row]) -> None:
        assert node.watermarks.column is not None
        self._strategy, self._column = node.watermarks, node.watermarks.column
        self._step, self._row = step, row
        self.begin(0)

    def begin(self, now_ms: int) -> None:
        self._mark = channel_watermark(self._strategy, self._step, self._row)
        self._is_quiet = self._strategy.idle_ms is not None

    def apply(self, batch: Batch) -> Outputs:
        if batch.table.column(self._column).null_count:
            raise RowError.null_time(self._step, self._column)
        rows = Batch(batch.table, timestamps_of(batch.table, self._column, self._step), kinds=batch.kinds)
        self._mark.see(rows)
        self._is_quiet = False
        return [(None, rows)]

    def watermark(self, heard_ms: int, *, is_idle: bool) -> tuple[int, bool]:
        return self._mark.end(), self._is_quiet


class DelayWatermarksOperator:
    """Gives rows the time of a column, and lets event time come so much later."""

    def __init__(self, node: DelayWatermarksNode, step: str, row: type[Row]) -> None:
        self._column, self._delay_ms, self._step = node.column, node.delay_ms, step

    def apply(self, batch: Batch) -> Outputs:
        times = timestamps_of(batch.table, self._column, self._step)
        return [(None, Batch(batch.table, times, kinds=batch.kinds))]

    def watermark(self, heard_ms: int, *, is_idle: bool) -> tuple[int, bool]:
        return max(heard_ms - self._delay_ms, MIN_TIMESTAMP), is_idle
