"""Top-n: the rows of each key that come first in an order, told as what changes at each rank, or among them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.row_kinds import DELETE, INSERT, adds, inserts
from headwater.data.rows import Row
from headwater.graph.nodes import TopNNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import group
from headwater.operators.join.contents import first_equal
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import keys_in
from headwater.operators.join.net import net_effect
from headwater.operators.join.run import RowIds
from headwater.operators.join.store import RowStore
from headwater.operators.keys import key_arrays
from headwater.operators.rank.ranking import Candidates, kept_of, ranked, ranks
from headwater.operators.replaced import Replaced
from headwater.state.backend import StateBackend
from headwater.state.columns import Places
from headwater.state.memory_backend import MEMORY


class TopNOperator(KeepsRows):
    """Runs one `top_n` on one subtask: whole batches at a time, with one change at most for each key and rank of an epoch.

    Over rows that are only added it keeps those that have a rank. Over a changelog it keeps all, since any of them may
    come to have one. With a ttl, rows are forgotten that long after the epoch in which they came.
    """

    needs_order = True

    def __init__(self, node: TopNNode, step: str, row: type[Row], *, backend: StateBackend = MEMORY) -> None:
        self._node, self._names = node, list(node.key.columns)
        self._store = RowStore(node.rows.arrow, self._names, backend.shelf)
        super().__init__({"rows": self._store}, forgets=node.ttl_ms is not None)

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        self._expire(time.now_ms)
        rows, store, ranking = batch.table, self._store, self._node.ranking
        groups = group(key_arrays(batch, self._node.key), len(batch))
        keys = keys_in(rows, self._names)
        of_groups = keys.take(groups.first)
        before = kept_of(store, of_groups)
        net = net_effect(rows, adds(inserts(len(batch)) if batch.kinds is None else batch.kinds), store)
        self._dropped.count(net.missed)
        ranked_before, _ = ranked(before, ranking)
        came = Candidates(rows.take(pa.array(net.added)), groups.codes[net.added], store.next_id + net.added)
        left = before.take(np.flatnonzero(~np.isin(before.ids, net.ids)))
        ranked_after, outdone = ranked(left.and_also(came), ranking)
        added = net.added
        if self._node.takes_back:
            store.remove(RowIds(net.ids, keys.hashes[net.removed]))
        else:  # what can have no rank any more
            store.remove(outdone.kept(store, of_groups))
            added = added[~np.isin(store.next_id + added, outdone.ids)]
        store.add(rows.take(pa.array(added)), np.full(len(added), time.now_ms, np.int64), keys.take(added))
        last = np.empty(len(groups), np.int64)
        last[groups.codes] = np.arange(len(batch))
        tell = self._changes if self._node.tells_places else self._comings_and_goings
        told = tell(self._shown(ranked_before), self._shown(ranked_after), batch, last)
        if len(told):
            emit(None, told)

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._expire(time.now_ms)

    def _expire(self, now_ms: int) -> None:
        if self._node.ttl_ms is not None:
            self._forget(self._store, now_ms - self._node.ttl_ms)

    def _shown(self, rows: Candidates) -> Candidates:
        """Of rows in the order of keys and ranks, those that are given."""
        first = self._node.ranking.first
        return rows if first == 1 else rows.take(np.flatnonzero(ranks(rows.keys) >= first - 1))

    def _changes(self, before: Candidates, after: Candidates, batch: Batch, last: Places) -> Batch:
        """What became of each rank of each key, at the time of the key's last row."""
        n = self._node.ranking.n
        was, now = (rows.keys * n + ranks(rows.keys) for rows in (before, after))
        slots = np.union1d(was, now)
        is_there = np.isin(slots, now)
        at = pa.array(np.searchsorted(now, slots), mask=~is_there)
        given = self._given(after).take(at)
        replaced = Replaced(np.searchsorted(slots, was), self._given(before), given, is_there)
        return replaced.told(batch.timestamps, last[slots // n], sends_before=self._node.sends_before)

    def _given(self, rows: Candidates) -> pa.Table:
        """Rows as they are given: with their ranks, if asked for."""
        if not self._node.has_rank:
            return rows.rows
        numbers = pa.array(ranks(rows.keys) + self._node.ranking.first, pa.int64())
        return pa.Table.from_arrays([*rows.rows.columns, numbers], schema=self._node.schema.arrow)

    def _comings_and_goings(self, before: Candidates, after: Candidates, batch: Batch, last: Places) -> Batch:
        """Which rows of each key are given no more, and which are new, at the time of the key's last row."""
        goes = before.take(np.flatnonzero(~np.isin(before.ids, after.ids)))
        comes = after.take(np.flatnonzero(~np.isin(after.ids, before.ids)))
        goes, comes = _without_equal(goes, comes)
        kinds = np.repeat(np.array([DELETE, INSERT], np.int8), [len(goes.ids), len(comes.ids)])
        of = last[np.concatenate([goes.keys, comes.keys])]
        table = pa.concat_tables([goes.rows, comes.rows])
        return Batch(table, batch.timestamps[of], kinds=kinds).take(np.argsort(of, kind="stable"))


def _without_equal(goes: Candidates, comes: Candidates) -> tuple[Candidates, Candidates]:
    """Without those that come as others with the same values go."""
    if not len(goes.ids) or not len(comes.ids):
        return goes, comes
    same = first_equal(pa.concat_tables([goes.rows, comes.rows]))
    of_goes, of_comes = same[: len(goes.ids)], same[len(goes.ids) :]
    counts = [np.bincount(codes, minlength=len(same)) for codes in (of_goes, of_comes)]
    stays_gone, stays_new = _nth(of_goes) >= counts[1][of_goes], _nth(of_comes) >= counts[0][of_comes]
    return goes.take(np.flatnonzero(stays_gone)), comes.take(np.flatnonzero(stays_new))


def _nth(codes: Places) -> Places:
    """For each code, how many of the same come before it."""
    order = np.argsort(codes, kind="stable")
    found = np.empty_like(codes)
    found[order] = ranks(codes[order])
    return found
