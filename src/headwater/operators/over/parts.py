"""What an OVER is put together from: each part computes some of its functions and keeps what these need of earlier rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.aggregates import Aggregate
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Timestamps, flat
from headwater.data.rows import decode
from headwater.functions import EVENT
from headwater.graph.nodes import OverAggregateNode
from headwater.graph.nodes.over import RANGE, Lag, Numbering
from headwater.operators.aggregation import Aggregation
from headwater.operators.grouping import Codes
from headwater.operators.join.keys import JoinKeys
from headwater.operators.join.last_used import LastUsed
from headwater.operators.join.run import RowIds
from headwater.operators.join.store import RowStore
from headwater.operators.keys import key_spread
from headwater.operators.over.due import Due
from headwater.operators.over.frames import between, up_to_each
from headwater.state.accumulators import Accumulators, open_accumulators
from headwater.state.backend import StateBackend
from headwater.state.columns import Places

Results = Mapping[str, pa.Array]
"""A value for each row that is due, by the name of the function."""


class Part(Protocol):
    """Computes some functions over the rows that are due."""

    def over(self, due: Due) -> Results:
        """The results; what later rows need of these is kept."""

    def expire(self, until_ms: int) -> None:
        """All rows up to a time have been due."""
        return

    def forget(self, keys: JoinKeys, values: list[Any]) -> int:
        """Forget partitions that had no rows for a time, but for what goes by time itself; gives how many things went."""
        return 0

    def tell(self, last_used: LastUsed) -> None:
        """Tell of the partitions that could be forgotten."""
        return


class KeepsAccumulators(Part, Protocol):
    """A part that keeps accumulators by partition."""

    kept: Accumulators

    def forget(self, keys: JoinKeys, values: list[Any]) -> int:
        there = [values[place] for place in np.flatnonzero(self.kept.has(values)).tolist()]
        self.kept.remove(there)
        return len(there)

    def tell(self, last_used: LastUsed) -> None:
        last_used.use_keys(decode(self.kept.table.dump()["key"]))


class RunningAggregates(KeepsAccumulators):
    """Aggregates over all rows so far: one accumulator of each partition is kept."""

    def __init__(
        self, node: OverAggregateNode, aggregates: Mapping[str, Aggregate], step: str, backend: StateBackend
    ) -> None:
        self._aggregation = Aggregation(aggregates, node.rows, step)
        self._names, self._by_range = list(aggregates), node.frame.kind == RANGE and node.time == EVENT
        self._schema = pa.schema(self._aggregation.fields)
        self.kept = open_accumulators("kept", self._schema, step, node.key.type, key_spread(node.key), backend=backend)

    def over(self, due: Due) -> Results:
        count = len(due.times)
        each = self._aggregation.partial(due.rows, np.arange(count), count).cast(self._schema)
        found: pa.Table = None

        def fold(places: Places, before: pa.Table) -> pa.Table:
            """The accumulators of a partition are a row before its rows."""
            nonlocal found
            groups = np.concatenate([places, due.groups])
            order = np.argsort(groups, kind="stable")
            rows = pa.concat_tables([before, each]).take(pa.array(order))
            until = up_to_each(self._aggregation, rows, groups[order])
            found = until.filter(pa.array(order >= len(places)))
            return found.take(pa.array(due.last))

        self.kept.update(due.keys, fold)
        if self._by_range:
            found = found.take(pa.array(due.last_of_time()))
        return dict(zip(self._names, self._aggregation.result(found), strict=True))


class Numberings(KeepsAccumulators):
    """The numbers of rows: how many rows of each partition there were is kept, and the numbers of the last one."""

    _SCHEMA = pa.schema([pa.field(name, pa.int64()) for name in ("rows", "time", "rank", "dense_rank")])

    def __init__(
        self, node: OverAggregateNode, functions: Mapping[str, Numbering], step: str, backend: StateBackend
    ) -> None:
        self._functions = functions
        self.kept = open_accumulators(
            "numbers", self._SCHEMA, step, node.key.type, key_spread(node.key), backend=backend
        )

    def over(self, due: Due) -> Results:
        found: dict[str, Codes] = {}

        def fold(places: Places, before: pa.Table) -> pa.Table:
            nonlocal found
            rows, time, rank, dense = (_spread(column, places, len(due.first)) for column in before.columns)
            found = _numbers(due, rows, (time, rank, dense))
            last = due.last
            values = [found["row_number"][last], due.times[last], found["rank"][last], found["dense_rank"][last]]
            return pa.Table.from_arrays([pa.array(value) for value in values], schema=self._SCHEMA)

        self.kept.update(due.keys, fold)
        return {name: pa.array(found[numbering.function]) for name, numbering in self._functions.items()}


def _spread(column: pa.ChunkedArray, places: Places, count: int) -> Codes:
    """The values of some partitions, and 0 of the others."""
    values = np.zeros(count, np.int64)
    values[places] = column.to_numpy()
    return values


def _numbers(due: Due, rows: Codes, last: tuple[Codes, Codes, Codes]) -> dict[str, Codes]:
    """The numbers of rows, of partitions that had so many before, of which the last had this time and these numbers."""
    time, rank, dense = last
    groups, places = due.groups, np.arange(len(due.times))
    number = rows[groups] + places - due.first[groups] + 1
    is_new = due.is_new_time.copy()
    is_new[due.first] = (rows == 0) | (time != due.times[due.first])
    newest = np.maximum.accumulate(np.where(is_new, places, -1))
    is_known = newest >= due.first[groups]
    times = np.cumsum(is_new)
    before: Codes = times[due.first] - is_new[due.first]
    return {
        "row_number": number,
        "rank": np.where(is_known, number[newest], rank[groups]),
        "dense_rank": dense[groups] + times - before[groups],
    }


class LastRows(Part):
    """Aggregates over the last rows by number, and values of earlier rows: as many rows as these reach are kept."""

    def __init__(
        self,
        node: OverAggregateNode,
        aggregates: Mapping[str, Aggregate],
        lags: Mapping[str, Lag],
        step: str,
        backend: StateBackend,
    ) -> None:
        self._lags, self._names = lags, list(aggregates)
        self._aggregation = Aggregation(aggregates, node.rows, step) if aggregates else None
        self._preceding = (node.frame.preceding or 0) if aggregates else 0
        self._reach = max([self._preceding, *(lag.offset for lag in lags.values())])
        if aggregates and node.time == EVENT:
            self._reach = max(self._reach, 1)  # so that it is known which rows come too late
        read = [name for aggregate in aggregates.values() for name in aggregate.columns]
        self._key_names = list(node.key.columns)
        self.store, self._columns = _store(node, [*read, *(lag.column for lag in lags.values())], backend)

    def over(self, due: Due) -> Results:
        rows, keys = due.columns(self._columns)
        found = [*self.store.find(keys.take(due.first)), self.store.nothing(len(due.first))]
        kept = RowIds.together([part.named for part in found])
        groups = np.concatenate([*(part.probes for part in found), due.groups])
        # As they were given: where frames go by time, a row can be given after one of a later time.
        order = np.lexsort((np.concatenate([kept.ids, self.store.next_id + np.arange(len(rows))]), groups))
        groups = groups[order]
        together = pa.concat_tables([*(part.rows for part in found), rows]).take(pa.array(order))
        at = np.flatnonzero(order >= len(kept.ids))
        first = np.searchsorted(groups, groups)
        results: dict[str, pa.Array] = {}
        if self._aggregation is not None:
            each = self._aggregation.partial(together, np.arange(len(groups)), len(groups))
            frames = between(self._aggregation, each, groups, np.maximum(at - self._preceding, first[at]), at + 1)
            results = dict(zip(self._names, self._aggregation.result(frames), strict=True))
        for name, lag in self._lags.items():
            results[name] = _lagged(lag, together, due, at=at, first=first[at])
        self._keep(order, np.searchsorted(groups, groups, side="right"), kept, due)
        return results

    def _keep(self, order: Places, ends: Places, kept: RowIds, due: Due) -> None:
        """Keep the last rows of each partition, as many as are reached from the next one."""
        stays = ends - np.arange(len(order)) <= self._reach
        was = order < len(kept.ids)
        self.store.remove(kept.take(order[was & ~stays]))
        rows, keys = due.columns(self._columns)
        new = order[~was & stays] - len(kept.ids)
        self.store.add(rows.take(pa.array(new)), due.times[new], keys.take(new))

    def forget(self, keys: JoinKeys, values: list[Any]) -> int:
        found = RowIds.together([part.named for part in self.store.find(keys)])
        self.store.remove(found)
        return len(found.ids)

    def tell(self, last_used: LastUsed) -> None:
        last_used.use(self.store.dump(), self._key_names)


def _lagged(lag: Lag, rows: pa.Table, due: Due, *, at: Places, first: Places) -> pa.Array:
    """Values of the rows so many before those at these places, of partitions that begin at others."""
    before = at - lag.offset
    values = flat(rows.column(lag.column).take(pa.array(before, mask=before < first)))
    if lag.default is None:
        return values
    return pc.if_else(pa.array(before >= first), values, flat(due.rows.column(lag.default)))


class RowsInRange(Part):
    """Aggregates over the rows of a stretch of time: rows are kept for as long.

    In event time they are kept for half as long again, as in Flink, since rows that come late have frames, too.
    """

    def __init__(
        self, node: OverAggregateNode, aggregates: Mapping[str, Aggregate], step: str, backend: StateBackend
    ) -> None:
        assert node.frame.preceding is not None
        self._names, self._preceding_ms = list(aggregates), node.frame.preceding
        self._stays_ms = self._preceding_ms * 3 // 2 if node.time == EVENT else self._preceding_ms
        self._aggregation = Aggregation(aggregates, node.rows, step)
        read = [name for aggregate in aggregates.values() for name in aggregate.columns]
        self.store, self._columns = _store(node, read, backend)

    def over(self, due: Due) -> Results:
        rows, keys = due.columns(self._columns)
        low = _earlier(due.times, self._preceding_ms)
        high = np.full(len(due.first), MAX_TIMESTAMP)
        found = [*self.store.find(keys.take(due.first), low[due.first], high), self.store.nothing(len(due.first))]
        groups = np.concatenate([*(part.probes for part in found), due.groups])
        times = np.concatenate([*(part.times for part in found), due.times])
        order = np.argsort(groups, kind="stable")
        groups, times = groups[order], times[order]
        together = pa.concat_tables([*(part.rows for part in found), rows]).take(pa.array(order))
        at = np.flatnonzero(order >= len(order) - len(rows))
        known = np.unique(times)
        numbers = groups * (len(known) + 1) + np.searchsorted(known, times)  # in order, as times are in each group
        lowest = groups[at] * (len(known) + 1) + np.searchsorted(known, low)
        each = self._aggregation.partial(together, np.arange(len(groups)), len(groups))
        ends = np.searchsorted(numbers, numbers[at], side="right")
        frames = between(self._aggregation, each, groups, np.searchsorted(numbers, lowest), ends)
        self.store.add(rows, due.times, keys)
        return dict(zip(self._names, self._aggregation.result(frames), strict=True))

    def expire(self, until_ms: int) -> None:
        """The next row is later, or late, and reaches so far back."""
        self.store.expire(max(until_ms - self._stays_ms, MIN_TIMESTAMP))


def last_times(store: RowStore, keys: JoinKeys) -> Timestamps:
    """For each key, the time of the last row that is kept."""
    found = np.full(len(keys), MIN_TIMESTAMP)
    latest = store.latest(keys, np.full(len(keys), MAX_TIMESTAMP))
    found[latest.probes] = latest.times
    return found


def _store(node: OverAggregateNode, read: list[str], backend: StateBackend) -> tuple[RowStore, list[str]]:
    """What keeps the columns that are read, and those of the key."""
    wanted = {*node.key.columns, *read}
    names = [name for name in node.rows.names if name in wanted]
    schema = pa.schema([node.rows.field(name) for name in names])
    return RowStore(schema, list(node.key.columns), backend.shelf), names


def _earlier(times: Timestamps, by_ms: int) -> Timestamps:
    """Times so much earlier, but for those before which there are no so early ones."""
    return np.maximum(times, MIN_TIMESTAMP + by_ms) - by_ms
