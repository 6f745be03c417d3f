"""The rows that a side of a join keeps: added, found by key and time, marked and removed, many at once.

It is kept as a few runs, each about twice as large as the next newer one, so that adding rows costs a logarithm of what
is stored and finding them does not cost what is stored. What is found, and in which order, does not depend on the runs.
Rows die in the order of time; up to where is known by one pair of numbers, not by row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.batch import Timestamps
from headwater.operators.join.keys import JoinKeys, are_equal, keys_in
from headwater.operators.join.run import End, Places, Run, expand, merged
from headwater.state.table import PUT, REMOVE

MARK = 3
"""What a row of a change table does, besides putting and removing: mark a row."""
_CHUNK_PAIRS = 1 << 18
"""About so many pairs are made at a time; bounds memory when a key has many rows."""
_HEADING = [
    pa.field("@op", pa.int8()),
    pa.field("@id", pa.int64()),
    pa.field("@time", pa.int64()),
    pa.field("@marked", pa.bool_()),
]


@dataclass(frozen=True)
class Found:
    """Rows found, in the order of the rows they were found for, then of time, then of arrival."""

    probes: Places
    """For each, the row that it was found for."""
    rows: pa.Table
    times: Timestamps
    ids: Places


class RowStore:
    """The rows of one side on one subtask."""

    def __init__(self, schema: pa.Schema, key_names: list[str]) -> None:
        self._schema, self._key_names = schema, key_names
        self._stored = pa.schema([*_HEADING, *schema])
        self.clear_all()

    def clear_all(self) -> None:
        self.next_id = 0
        self.end = End()
        """Up to where rows are dead."""
        self._runs: list[Run] = []
        self._alive = 0
        self.forget_changes()

    def add(
        self, rows: pa.Table, times: Timestamps, keys: JoinKeys, marked: npt.NDArray[np.bool_] | None = None
    ) -> None:
        """Keep rows, in order of arrival."""
        if not len(rows):
            return
        marked = np.zeros(len(rows), np.bool_) if marked is None else marked
        ids = np.arange(self.next_id, self.next_id + len(rows))
        self.next_id += len(rows)
        self._added.append(self._table(PUT, ids, times, marked, rows.columns))
        self._put(Run(rows, times, keys.hashes, ids, marked))

    def _put(self, run: Run) -> None:
        self._alive += len(run) - run.died(self.end)
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last = [run for run in (self._compact(run) for run in self._runs[-2:]) if run is not None]
            self._runs[-2:] = [merged(last)] if last else []

    def find(
        self, keys: JoinKeys, low: Timestamps | None = None, high: Timestamps | None = None, *, mark: bool = False
    ) -> Iterator[Found]:
        """The living rows of each key, of the times from `low` to `high` if given, in parts; marks them if asked."""
        ranges = [
            run.of_keys(keys.hashes) if low is None or high is None else run.between(keys.hashes, low, high)
            for run in self._runs
        ]
        counts = np.zeros(len(keys), np.int64)
        for begin, end in ranges:
            counts += end - begin
        for first, last in _chunks(counts):
            chunk = [(begin[first:last], end[first:last]) for begin, end in ranges]
            found = self._find(keys, first, chunk, mark=mark)
            if found is not None:
                yield found

    def _find(self, keys: JoinKeys, first: int, ranges: list[tuple[Places, Places]], *, mark: bool) -> Found | None:
        parts: list[tuple[Run, Places, Places]] = []
        for run, (begin, end) in zip(self._runs, ranges, strict=True):
            probes, places = expand(begin, end)
            probes += first
            alive = run.alive(places, self.end)
            if not alive.all():
                probes, places = probes[alive], places[alive]
            rows = run.rows.select(self._key_names).take(pa.array(places))
            equal = are_equal(keys, probes, keys_in(rows, self._key_names))
            if not equal.all():
                probes, places = probes[equal], places[equal]
            if len(places):
                parts.append((run, probes, places))
                if mark:
                    self._mark(run, places)
        if not parts:
            return None
        probes = np.concatenate([probes for _, probes, _ in parts])
        times = np.concatenate([run.times[places] for run, _, places in parts])
        ids = np.concatenate([run.ids[places] for run, _, places in parts])
        rows = pa.concat_tables([run.rows.take(pa.array(places)) for run, _, places in parts])
        if len(parts) == 1:
            return Found(probes, rows, times, ids)
        order = np.lexsort((times, probes))
        return Found(probes[order], rows.take(pa.array(order)), times[order], ids[order])

    def _mark(self, run: Run, places: Places) -> None:
        fresh = np.unique(places[~run.marked[places]])
        run.marked[fresh] = True
        self._marked.append(run.ids[fresh])

    def remove(self, ids: Places) -> None:
        """Take out living rows."""
        self._removed.append(ids)
        self._take_out(ids)

    def _take_out(self, ids: Places) -> None:
        for run in self._runs:
            places = run.places_of(ids)
            if len(places):
                run.gone = np.zeros(len(run), np.bool_) if run.gone is None else run.gone
                places = places[run.alive(places, self.end)]
                self._alive -= len(places)
                run.gone[places] = True
        self._tidy()

    def expire(self, until_ms: int, *, unmarked: bool = False) -> tuple[pa.Table, Timestamps]:
        """Let the rows here of this time or before die; gives those never marked, if asked, in the order of time."""
        return self.expire_to(max(self.end, End(until_ms, self.next_id)), unmarked=unmarked)

    def expire_to(self, end: End, *, unmarked: bool = False) -> tuple[pa.Table, Timestamps]:
        """Let rows up to there die."""
        died = [(run, self._dying(run, end)) for run in self._runs]
        self._alive -= sum(len(places) for _, places in died)
        self.end = end
        found = [(run, places[~run.marked[places]]) for run, places in died] if unmarked else []
        rows = pa.concat_tables(
            [self._schema.empty_table(), *(run.rows.take(pa.array(places)) for run, places in found)]
        )
        times = np.concatenate([np.empty(0, np.int64), *(run.times[places] for run, places in found)])
        ids = np.concatenate([np.empty(0, np.int64), *(run.ids[places] for run, places in found)])
        order = np.lexsort((ids, times))
        self._tidy()
        return rows.take(pa.array(order)), times[order]

    def _dying(self, run: Run, end: End) -> Places:
        places = run.by_time[run.died(self.end) : run.died(end)]
        return places if run.gone is None else places[~run.gone[places]]

    def _tidy(self) -> None:
        """Rewrite the runs of which more than half is dead or gone: a row is rewritten once for each that is dropped."""
        self._runs = [run for run in map(self._compact_if_worth, self._runs) if run is not None]

    def _compact_if_worth(self, run: Run) -> Run | None:
        gone = 0 if run.gone is None else int(np.count_nonzero(run.gone))
        return self._compact(run) if 2 * max(run.died(self.end), gone) > len(run) else run

    def _compact(self, run: Run) -> Run | None:
        return run if run.gone is None and not run.died(self.end) else run.without_dead(self.end)

    # -- changelog --------------------------------------------------------------------------------------------------

    def changes(self) -> pa.Table | None:
        """What was put, in order, then what was marked, then what was removed."""
        parts = list(self._added)
        for op, ids in ((MARK, self._marked), (REMOVE, self._removed)):
            if ids:
                parts.append(self._bare(op, np.concatenate(ids)))
        self.forget_changes()
        return pa.concat_tables(parts).combine_chunks() if parts else None

    def forget_changes(self) -> None:
        self._added: list[pa.Table] = []
        self._marked: list[Places] = []
        self._removed: list[Places] = []

    def dump(self) -> pa.Table:
        """The living rows in the order of arrival."""
        alive = [run for run in map(self._compact, self._runs) if run is not None]
        if not alive:
            return self._stored.empty_table()
        parts = [self._table(PUT, run.ids, run.times, run.marked, run.rows.columns) for run in alive]
        together = pa.concat_tables(parts)
        return together.take(pa.array(np.argsort(together["@id"].to_numpy()))).combine_chunks()

    def apply(self, changes: pa.Table) -> None:
        ops, ids = changes["@op"].to_numpy(), changes["@id"].to_numpy()
        puts = changes.slice(0, int(np.count_nonzero(ops == PUT)))
        if len(puts):
            rows = puts.select(self._schema.names).combine_chunks()
            marked = np.array(puts["@marked"].to_numpy(), np.bool_)
            hashes = keys_in(rows, self._key_names).hashes
            self._put(Run(rows, puts["@time"].to_numpy(), hashes, puts["@id"].to_numpy(), marked))
        for run in self._runs:
            run.marked[run.places_of(ids[ops == MARK])] = True
        if (ops == REMOVE).any():
            self._take_out(ids[ops == REMOVE])

    def _bare(self, op: int, ids: Places) -> pa.Table:
        nothing = [pa.nulls(len(ids), field.type) for field in self._schema]
        return self._table(op, ids, np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_), nothing)

    def _table(
        self, op: int, ids: Places, times: Timestamps, marked: npt.NDArray[np.bool_], columns: list[pa.Array]
    ) -> pa.Table:
        ops = pa.array(np.full(len(ids), op, np.int8))
        heading = [ops, pa.array(ids), pa.array(times), pa.array(marked)]
        return pa.Table.from_arrays([*heading, *columns], schema=self._stored)

    def __len__(self) -> int:
        return self._alive


def _chunks(counts: Places) -> Iterator[tuple[int, int]]:
    """Ranges of probes with about so many pairs each; a single probe is not divided."""
    total = np.cumsum(counts)
    first = 0
    while first < len(counts):
        before = int(total[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(total, before + _CHUNK_PAIRS, side="right")))
        yield first, last
        first = last
