"""The interval join: rows of two sides with one key whose times are within bounds of each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Timestamps, no_timestamps
from headwater.data.rows import Row
from headwater.errors import RowError
from headwater.functions import EVENT, OutputTag
from headwater.graph.edges import Key
from headwater.graph.nodes import IntervalJoinNode
from headwater.operators.contract import Emit, StepTime, TwoInputs
from headwater.operators.join.columns import PairColumns
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import JoinKeys, key_names, keyed_rows, keys_in, stored_schema
from headwater.operators.join.store import RowStore
from headwater.operators.pairs import places_of_pairs
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.shelf import Shelf


class _Side:
    """One side: what it keeps, until when, and where its late and unmatched rows go."""

    def __init__(
        self,
        key: Key,
        rows: pa.Schema,
        reach_ms: tuple[int, int],
        outputs: tuple[OutputTag | None, OutputTag | None],
        shelf: Shelf,
    ) -> None:
        self.key = key
        self.late, self.unmatched = outputs
        self.low_ms, self.high_ms = reach_ms
        """How far before and after a row's time the rows of the other side are that it is paired with."""
        self.names = key_names(key)
        self.columns = rows.names
        self.store = RowStore(stored_schema(rows, key), self.names, shelf)

    @property
    def stays_ms(self) -> int:
        """How long a row is kept after its time: as long as a row of the other side can meet it and not be late."""
        return max(self.high_ms, 0)


class IntervalJoinOperator(KeepsRows):
    """Runs one interval join on one subtask. The pairs of an epoch come left row by left row, then right by right."""

    needs_order = False

    def __init__(
        self, node: IntervalJoinNode, step: str, left: type[Row], right: type[Row], *, backend: StateBackend = MEMORY
    ) -> None:
        self._node, self._step, self._is_event_time = node, step, node.time == EVENT
        lower, upper = node.lower_ms, node.upper_ms
        of_left, of_right = (node.late_left, node.unmatched_left), (node.late_right, node.unmatched_right)
        left_rows, right_rows, shelf = node.left_schema.arrow, node.right_schema.arrow, backend.shelf
        self._left = _Side(node.key, left_rows, (lower, upper), of_left, shelf)
        self._right = _Side(node.right_key, right_rows, (-upper, -lower), of_right, shelf)
        self._pairs = PairColumns(node)
        self._marks = node.unmatched_left is not None or node.unmatched_right is not None
        super().__init__({"left": self._left.store, "right": self._right.store})

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        for batch, side, other in ((inputs.left, self._left, self._right), (inputs.right, self._right, self._left)):
            if batch is None:
                continue
            timely = self._timely(batch, side, time.watermark_ms, emit) if self._is_event_time else batch
            rows = keyed_rows(timely, side.key)
            keys = keys_in(rows.table, side.names)
            times = rows.timestamps if self._is_event_time else np.full(len(rows), time.now_ms)
            has_met = self._meet(rows, keys, side, other, emit, times=times)
            side.store.add(rows.table, times, keys, has_met)

    def _timely(self, batch: Batch, side: _Side, watermark_ms: int, emit: Emit) -> Batch:
        """The rows that are not late; the others go to their side output or are counted."""
        times = batch.timestamps
        if len(times) and times.min() == MIN_TIMESTAMP:
            raise RowError.no_event_time(self._step)
        is_late = times < watermark_ms
        if not is_late.any():
            return batch
        late = np.flatnonzero(is_late)
        if side.late is None:
            self._dropped.add(batch, late, watermark_ms, side.key)
        else:
            gone = batch.take(late)
            emit(side.late.name, Batch(gone.table, gone.timestamps))
        return batch.take(np.flatnonzero(~is_late))

    def _meet(
        self, rows: Batch, keys: JoinKeys, side: _Side, other: _Side, emit: Emit, *, times: Timestamps
    ) -> npt.NDArray[np.bool_]:
        """Emit the pairs of new rows with those the other side keeps; tells which of them met any."""
        has_met = np.zeros(len(rows), np.bool_)
        low, high = _moved(times, side.low_ms), _moved(times, side.high_ms)
        for found in other.store.find(keys, low, high):
            ours = rows.table.take(pa.array(found.probes))
            left, right = (ours, found.rows) if side is self._left else (found.rows, ours)
            event_times = rows.timestamps[found.probes]
            if self._is_event_time:
                event_times = np.maximum(event_times, found.times)
            pairs = Batch(
                pa.Table.from_arrays(self._pairs.of(left, right), schema=self._node.schema.arrow), event_times
            )
            probes, met, marked = found.probes, found.named, found.marked
            if self._node.condition is not None:
                kept = places_of_pairs(self._node.condition, pairs.table, self._step)
                pairs, probes, met, marked = pairs.take(kept), probes[kept], met.take(kept), marked[kept]
            has_met[probes] = True
            if self._marks:
                other.store.mark(met.take(~marked).distinct())
            if len(pairs):
                emit(None, pairs)
        return has_met

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        if self._is_event_time:
            return
        for side in (self._left, self._right):  # of which a row to come, now or later, can meet none any more
            rows, _ = side.store.expire(time.now_ms - side.stays_ms - 1, unmarked=side.unmatched is not None)
            if side.unmatched is not None and len(rows):
                emit(side.unmatched.name, Batch(rows.select(side.columns), no_timestamps(len(rows))))

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        if not self._is_event_time:
            return
        for side in (self._left, self._right):
            until = (
                max(time.watermark_ms - side.stays_ms, MIN_TIMESTAMP)
                if time.watermark_ms != MAX_TIMESTAMP
                else MAX_TIMESTAMP
            )
            rows, times = side.store.expire(until, unmarked=side.unmatched is not None)
            if side.unmatched is not None and len(rows):
                emit(side.unmatched.name, Batch(rows.select(side.columns), _moved(times, side.stays_ms)))


def _moved(times: Timestamps, by_ms: int) -> Timestamps:
    """Times moved, and stopped at the ends of what 64 bits hold."""
    bound = MAX_TIMESTAMP - by_ms if by_ms > 0 else MIN_TIMESTAMP - by_ms
    return (np.minimum(times, bound) if by_ms > 0 else np.maximum(times, bound)) + by_ms
