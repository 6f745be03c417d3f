"""The rows that a side of a join keeps: added, found by key and time, marked and removed, many at once.

It is kept as runs in the order of keys (`state/runs.py`): adding and finding rows costs a logarithm of what is stored.
What is found, and in which order, does not depend on the runs.
Rows die in the order of time; up to where is known by one pair of numbers, not by row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.batch import MIN_TIMESTAMP, Timestamps
from headwater.operators.join.contents import equal_rows, first_equal, hash_rows
from headwater.operators.join.keys import JoinKeys, are_equal, keys_in
from headwater.operators.join.run import Columns, End, Places, Probes, Ranges, RowIds, Run, chunks, expand, merged
from headwater.state.keys import Hashes
from headwater.state.runs import ALL_HASHES, HashRange, Runs
from headwater.state.shelf import IN_MEMORY, Shelf
from headwater.state.slices import Slice
from headwater.state.spread import InOneOrder, Spread, by_columns
from headwater.state.table import PUT, REMOVE

MARK, UNMARK = 3, 4
"""What a row of a change table does, besides putting and removing: set or take back the mark of a row."""
_NOWHERE = np.empty(0, np.int64)
_HEADING = [
    pa.field("@op", pa.int8()),
    pa.field("@id", pa.int64()),
    pa.field("@time", pa.int64()),
    pa.field("@marked", pa.bool_()),
]
"""Stands before the columns of rows, under names that those are not likely to have."""


@dataclass(frozen=True)
class Found:
    """Rows found, in the order of the rows they were found for, then of time, then of arrival."""

    probes: Places
    """For each, the row that it was found for."""
    rows: pa.Table
    times: Timestamps
    ids: Places
    hashes: Hashes
    """Those of the rows' keys."""
    marked: npt.NDArray[np.bool_]
    until: int = 0
    """Where it is found in parts: all is found for the probes before this one."""

    @property
    def named(self) -> RowIds:
        """The rows, as `mark` and `remove` are told of them."""
        return RowIds(self.ids, self.hashes)

    def take(self, order: Places) -> Found:
        rows = self.rows.take(pa.array(order))
        named = self.named.take(order)
        return Found(self.probes[order], rows, self.times[order], *named, self.marked[order], self.until)

    def last(self) -> Found:
        """The last of each probe."""
        return self.take(np.flatnonzero(np.diff(self.probes, append=-1)))


class RowStore:
    """The rows of one side on one subtask."""

    cut_since = 2

    def __init__(self, schema: pa.Schema, key_names: list[str], shelf: Shelf = IN_MEMORY) -> None:
        self._schema, self._key_names, self._shelf = schema, key_names, shelf
        self._stored = pa.schema([*_HEADING, *schema])
        self.spread: Spread = InOneOrder(by_columns(key_names), "@id")
        self.clear_all()

    def clear_all(self) -> None:
        self.next_id = 0
        self.end = End()
        """Up to where rows are dead."""
        self._runs: Runs[Run] = Runs(self._shelf)
        self._alive = 0
        self.forget_changes()

    def _number_from(self, number: int) -> None:
        """Number rows from here on, and never as one that is there."""
        self.next_id = max(self.next_id, number)

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
        self._put(Run.of(Columns(rows, times, keys.hashes, ids, marked), self._shelf))

    def _put(self, run: Run) -> None:
        self._alive += len(run) - run.died(self.end)
        self._runs.put(run)
        self._runs.merge(self._rewritten)

    def _rewritten(self, runs: Sequence[Run], part: HashRange) -> Run | None:
        """What lives of runs within a range as one."""
        if len(runs) == 1 and part == ALL_HASHES:
            return runs[0].without_dead(self.end)
        columns = merged([run.columns(part, self.end) for run in runs])
        return Run.of(columns, self._shelf) if len(columns.ids) else None

    def find(self, keys: JoinKeys, low: Timestamps | None = None, high: Timestamps | None = None) -> Iterator[Found]:
        """The living rows of each key, of the times from `low` to `high` if given, in parts."""
        probing = Probes(keys.hashes)
        counts = np.zeros(len(keys), np.int64)
        found: list[tuple[Run, Ranges]] = []
        for run in self._runs:
            ranges = run.of_keys(probing) if low is None or high is None else run.between(probing, low, high)
            counts[ranges.probes] += ranges.end - ranges.begin
            if len(ranges.probes):
                found.append((run, ranges))
        for first, last in chunks(counts):
            parts = []
            for run, all_ranges in found:
                ranges = all_ranges.of_probes(first, last)
                at, places = expand(ranges.begin, ranges.end)
                probes = ranges.probes[at]
                good = self._is_met(run, places, keys, probes)
                parts.append((run, probes, places) if good.all() else (run, probes[good], places[good]))
            if any(len(places) for _, _, places in parts):
                yield self._found(parts, until=last)

    def _found(self, parts: list[tuple[Run, Places, Places]], *, until: int = 0, by_arrival: bool = False) -> Found:
        """What lies at these places of runs, for these probes."""
        parts = [part for part in parts if len(part[2])]
        probes = np.concatenate([_NOWHERE, *(probes for _, probes, _ in parts)])
        times = np.concatenate([_NOWHERE, *(run.times[places] for run, _, places in parts)])
        ids = np.concatenate([_NOWHERE, *(run.ids[places] for run, _, places in parts)])
        hashes = np.concatenate([_NOWHERE.astype(np.uint64), *(run.hashes[places] for run, _, places in parts)])
        marked = np.concatenate([_NOWHERE.astype(np.bool_), *(run.marked[places] for run, _, places in parts)])
        taken = [run.rows.take(pa.array(places)) for run, _, places in parts]
        rows = pa.concat_tables(taken or [self._schema.empty_table()])
        found = Found(probes, rows, times, ids, hashes, marked, until)
        if len(parts) == 1 and not by_arrival:
            return found
        return found.take(np.lexsort((ids, probes) if by_arrival else (ids, times, probes)))

    def nothing(self, until: int) -> Found:
        """The last part of what is found, in which there is nothing."""
        return self._found([], until=until)

    def _is_met(self, run: Run, places: Places, keys: JoinKeys, probes: Places) -> npt.NDArray[np.bool_]:
        """Whether rows are alive and have the keys of the probes."""
        good = run.alive(places, self.end)
        alive = np.flatnonzero(good)
        rows = run.rows.select(self._key_names).take(pa.array(places[alive]))
        good[alive] = are_equal(keys, probes[alive], rows, self._key_names)
        return good

    def has(self, keys: JoinKeys) -> npt.NDArray[np.bool_]:
        """Which of the keys have a living row."""
        found, probing = np.zeros(len(keys), np.bool_), Probes(keys.hashes)
        for run in self._runs:
            ranges = run.of_keys(probing)
            found[ranges.probes[self._last(run, keys, ranges) >= 0]] = True
        return found

    def latest(self, keys: JoinKeys, at: Timestamps) -> Found:
        """For each key that has one, its living row of the latest time not after `at`; of several, the last to arrive."""
        parts, probing = [], Probes(keys.hashes)
        for run in self._runs:
            ranges = run.between(probing, np.full(len(keys), MIN_TIMESTAMP), at)
            places = self._last(run, keys, ranges)
            parts.append((run, ranges.probes[places >= 0], places[places >= 0]))
        return self._found(parts).last()

    def _last(self, run: Run, keys: JoinKeys, ranges: Ranges) -> Places:
        """The last place in each range with a living row of the key, or -1; looked for from the end in growing steps."""
        begin, end = ranges.begin, ranges.end.copy()
        found = np.full(len(begin), -1)
        unsure, step = np.arange(len(begin)), 1
        while len(unsure):
            start = np.maximum(end[unsure] - step, begin[unsure])
            at, places = expand(start, end[unsure])
            good = self._is_met(run, places, keys, ranges.probes[unsure[at]])
            np.maximum.at(found, unsure[at[good]], places[good])
            end[unsure] = start
            unsure = unsure[(found[unsure] < 0) & (start > begin[unsure])]
            step *= 8
        return found

    def find_equal(self, rows: pa.Table) -> Found:
        """The living rows that equal these in all columns, in the order of the rows, then of arrival."""
        hashes, probing = hash_rows(rows), Probes(keys_in(rows, self._key_names).hashes)
        parts = []
        for run in self._runs:
            near = probing.order[probing.within(run.hashes)]
            at, places = run.like(hashes[near])
            probes = near[at]
            alive = run.alive(places, self.end)
            probes, places = probes[alive], places[alive]
            equal = equal_rows(rows.take(pa.array(probes)), run.rows.take(pa.array(places)))
            parts.append((run, probes[equal], places[equal]))
        return self._found(parts, by_arrival=True)

    def mark(self, rows: RowIds, *, on: bool = True) -> None:
        """Set the mark of living rows, or take it back."""
        if not len(rows.ids):
            return
        self._marked.append((MARK if on else UNMARK, rows.ids))
        self._set_mark(rows.ids, Probes(rows.hashes), on=on)

    def _set_mark(self, ids: Places, probing: Probes | None = None, *, on: bool) -> None:
        for run, places in self._places_of(ids, probing):
            run.marked[places] = on

    def remove(self, rows: RowIds) -> None:
        """Take out living rows."""
        if not len(rows.ids):
            return
        self._removed.append(np.sort(rows.ids))
        self._take_out(rows.ids, Probes(rows.hashes))

    def _take_out(self, ids: Places, probing: Probes | None = None) -> None:
        before = self._alive
        for run, places in self._places_of(ids, probing):
            alive = places[run.alive(places, self.end)]
            run.take_out(alive)
            self._alive -= len(alive)
        self._tidy(before - self._alive)

    def _places_of(self, ids: Places, probing: Probes | None) -> Iterator[tuple[Run, Places]]:
        """Where rows are; everywhere is looked if nobody knows the hashes of their keys."""
        for run in self._runs:
            near = ids if probing is None else ids[probing.order[probing.within(run.hashes)]]
            places = run.places_of(near)
            if len(places):
                yield run, places

    def remove_outdated(self, rows: pa.Table, until_ms: int) -> None:
        """Of the keys of these rows, take out what is not after a time, but for the latest, which may still be asked for."""
        distinct = np.unique(first_equal(rows.select(self._key_names)))
        keys = keys_in(rows.take(pa.array(distinct)), self._key_names)
        low, high = np.full(len(keys), MIN_TIMESTAMP), np.full(len(keys), until_ms)
        found = self.find(keys, low, high)
        self.remove(RowIds.together([part.named.take(np.diff(part.probes, append=-1) == 0) for part in found]))

    def within(self, after_ms: int, until_ms: int) -> pa.Table:
        """The living rows later than a time and not later than another, in no order."""
        start, end = End(after_ms, self.next_id), End(until_ms, self.next_id)
        parts = [run.rows.take(pa.array(self._between(run, start, end))) for run in self._runs]
        return pa.concat_tables([self._schema.empty_table(), *parts])

    def expire(self, until_ms: int, *, unmarked: bool = False) -> tuple[pa.Table, Timestamps]:
        """Let the rows here of this time or before die; gives those never marked, if asked, in the order of time."""
        return self.expire_to(max(self.end, End(until_ms, self.next_id)), unmarked=unmarked)

    def expire_to(self, end: End, *, unmarked: bool = False) -> tuple[pa.Table, Timestamps]:
        """Let rows up to there die."""
        died = [(run, self._between(run, self.end, end)) for run in self._runs]
        died_count = sum(len(places) for _, places in died)
        self._alive -= died_count
        self.end = end
        found = [(run, places[~run.marked[places]]) for run, places in died] if unmarked else []
        rows = pa.concat_tables(
            [self._schema.empty_table(), *(run.rows.take(pa.array(places)) for run, places in found)]
        )
        times = np.concatenate([_NOWHERE, *(run.times[places] for run, places in found)])
        ids = np.concatenate([_NOWHERE, *(run.ids[places] for run, places in found)])
        order = np.lexsort((ids, times))
        self._tidy(died_count)
        return rows.take(pa.array(order)), times[order]

    def _between(self, run: Run, start: End, end: End) -> Places:
        places = run.by_time[run.died(start) : run.died(end)]
        return places if run.gone is None else places[~run.gone[places]]

    def _tidy(self, dropped: int) -> None:
        """Rewrite runs of which more than half is dead or gone."""
        self._runs.tidy(dropped, lambda run: 2 * max(run.died(self.end), run.gone_count) > len(run), self._rewritten)

    def meta(self) -> list[int]:
        """The facts, besides its rows, that must survive."""
        return [self.next_id, *self.end]

    def set_meta(self, meta: list[int]) -> None:
        """Take over what `meta` gave."""
        number, *end = meta
        self._number_from(number)
        self.expire_to(End(*end))

    # -- changelog --------------------------------------------------------------------------------------------------

    def changes(self) -> pa.Table | None:
        """What was put, then what was marked and unmarked, each in order, then what was removed."""
        parts = [*self._added, *(self._bare(op, ids) for op, ids in self._marked)]
        if self._removed:
            parts.append(self._bare(REMOVE, np.concatenate(self._removed)))
        self.forget_changes()
        return pa.concat_tables(parts).combine_chunks() if parts else None

    def forget_changes(self) -> None:
        self._added: list[pa.Table] = []
        self._marked: list[tuple[int, Places]] = []
        self._removed: list[Places] = []

    def dump(self) -> pa.Table:
        """The living rows in the order of arrival."""
        return self._dumped(ALL_HASHES)

    def _dumped(self, part: Slice | HashRange) -> pa.Table:
        runs = [run.columns(part, self.end) for run in self._runs]
        parts = [self._table(PUT, run.ids, run.times, run.marked, run.rows.columns) for run in runs]
        together = pa.concat_tables([self._stored.empty_table(), *parts])
        return together.take(pa.array(np.argsort(together["@id"].to_numpy()))).combine_chunks()

    def dump_slice(self, part: Slice) -> pa.Table:
        """As `dump`, of the rows whose key falls into a slice."""
        return self._dumped(part)

    def load(self, dumped: pa.Table) -> None:
        self.apply(dumped)

    def falls_into(self, rows: pa.Table, part: Slice) -> npt.NDArray[np.bool_]:
        is_other: npt.NDArray[np.bool_] = rows["@op"].to_numpy() != PUT
        return is_other | part.has_hashes(keys_in(rows, self._key_names).hashes)

    def apply(self, changes: pa.Table) -> None:
        ops, ids = changes["@op"].to_numpy(), changes["@id"].to_numpy()
        puts = changes.slice(0, int(np.count_nonzero(ops == PUT)))
        if len(puts):
            rows = puts.select(self._schema.names).combine_chunks()
            marked = np.array(puts["@marked"].to_numpy(), np.bool_)
            hashes = keys_in(rows, self._key_names).hashes
            columns = Columns(rows, puts["@time"].to_numpy(), hashes, puts["@id"].to_numpy(), marked)
            self._put(Run.of(columns, self._shelf))
            self._number_from(int(ids[: len(puts)].max()) + 1)
        for op, first, last in _stretches(ops):
            if op in (MARK, UNMARK):
                self._set_mark(ids[first:last], on=op == MARK)
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


def merged_stores(metas: Sequence[dict[str, list[int]]]) -> dict[str, list[int]]:
    """What stores take over, by name, of what `meta` gave on several subtasks.

    Rows that were dead are not among those that are dealt out, so none of them is dead at the time where the stores end.
    """
    found = {}
    for name in metas[0]:
        numbers, until, _ = zip(*(meta[name] for meta in metas), strict=True)
        found[name] = [max(numbers), min(until), 0]
    return found


def _stretches(ops: npt.NDArray[np.int8]) -> Iterator[tuple[int, int, int]]:
    """The runs of equal values: value, first place, place behind the last."""
    bounds = np.flatnonzero(np.diff(ops)) + 1
    for first, last in zip([0, *bounds], [*bounds, len(ops)], strict=True):
        yield int(ops[first]), first, last
