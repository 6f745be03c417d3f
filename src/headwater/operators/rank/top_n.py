"""Top-n: the rows of each key that come first in an order, told as what changes at each rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.data.batch import Batch
from headwater.data.row_kinds import adds, inserts
from headwater.data.rows import Row
from headwater.graph.nodes import TopNNode
from headwater.operators.contract import Emit, StepTime
from headwater.operators.grouping import Codes, group
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import JoinKeys, keys_in
from headwater.operators.join.net import Net, net_effect
from headwater.operators.join.store import RowStore
from headwater.operators.keys import key_arrays
from headwater.operators.replaced import Replaced
from headwater.state.columns import Places


@dataclass(frozen=True)
class _Candidates:
    """Rows that may have a rank: each with its key's number in the batch, and its number of arrival."""

    rows: pa.Table
    keys: Codes
    ids: Places

    def take(self, at: Places) -> _Candidates:
        return _Candidates(self.rows.take(pa.array(at)), self.keys[at], self.ids[at])


class TopNOperator(KeepsRows):
    """Runs one `top_n` on one subtask: whole batches at a time, with one change at most for each key and rank of an epoch.

    Over rows that are only added it keeps those that have a rank. Over a changelog it keeps all, since any of them may
    come to have one.
    """

    needs_order = True

    def __init__(self, node: TopNNode, step: str, row: type[Row]) -> None:
        self._node, self._names = node, list(node.key.columns)
        self._store = RowStore(node.rows.arrow, self._names)
        super().__init__({"rows": self._store})

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        rows, store = batch.table, self._store
        groups = group(key_arrays(batch, self._node.key), len(batch))
        keys = keys_in(rows, self._names)
        before = self._kept(keys.take(groups.first))
        net = net_effect(rows, adds(inserts(len(batch)) if batch.kinds is None else batch.kinds), store)
        self._dropped += net.missed
        ranked_before, _ = self._ranked(before)
        came = _Candidates(rows.take(pa.array(net.added)), groups.codes[net.added], store.next_id + net.added)
        left = before.take(np.flatnonzero(~np.isin(before.ids, net.ids)))
        ranked_after, outdone = self._ranked(_together(left, came))
        self._keep(rows, keys, net, outdone)
        last = np.empty(len(groups), np.int64)
        last[groups.codes] = np.arange(len(batch))
        told = self._changes(ranked_before, ranked_after, batch, last)
        if len(told):
            emit(None, told)

    def _kept(self, keys: JoinKeys) -> _Candidates:
        """The rows that are kept of these keys."""
        found = [*self._store.find(keys), self._store.nothing(len(keys))]
        return _Candidates(
            pa.concat_tables([part.rows for part in found]),
            np.concatenate([part.probes for part in found]),
            np.concatenate([part.ids for part in found]),
        )

    def _ranked(self, rows: _Candidates) -> tuple[_Candidates, Places]:
        """The rows that have a rank, in the order of keys and ranks; and the numbers of the others."""
        in_order = rows.take(_sorted(rows, self._node.order))
        has_rank = _ranks(in_order.keys) < self._node.n
        return in_order.take(np.flatnonzero(has_rank)), in_order.ids[~has_rank]

    def _keep(self, rows: pa.Table, keys: JoinKeys, net: Net, outdone: Places) -> None:
        """Keep what came and forget what went, and what can have no rank any more."""
        store, added = self._store, net.added
        gone = net.ids
        if not self._node.takes_back:
            first = store.next_id
            gone = outdone[outdone < first]
            added = added[~np.isin(first + added, outdone)]
        store.remove(np.sort(gone))
        store.add(rows.take(pa.array(added)), np.zeros(len(added), np.int64), keys.take(added))

    def _changes(self, before: _Candidates, after: _Candidates, batch: Batch, last: Places) -> Batch:
        """What became of each rank of each key, at the time of the key's last row."""
        was, now = (rows.keys * self._node.n + _ranks(rows.keys) for rows in (before, after))
        slots = np.union1d(was, now)
        is_there = np.isin(slots, now)
        at = pa.array(np.searchsorted(now, slots), mask=~is_there)
        ranked = self._with_ranks(after).take(at)
        replaced = Replaced(np.searchsorted(slots, was), self._with_ranks(before), ranked, is_there)
        return replaced.told(batch.timestamps, last[slots // self._node.n], sends_before=self._node.sends_before)

    def _with_ranks(self, rows: _Candidates) -> pa.Table:
        ranks = pa.array(_ranks(rows.keys) + 1, pa.int64())
        return pa.Table.from_arrays([*rows.rows.columns, ranks], schema=self._node.schema.arrow)


def _together(left: _Candidates, came: _Candidates) -> _Candidates:
    return _Candidates(
        pa.concat_tables([left.rows, came.rows]),
        np.concatenate([left.keys, came.keys]),
        np.concatenate([left.ids, came.ids]),
    )


def _ranks(keys: Codes) -> Codes:
    """The place of each row among those of its key, from 0. Rows come key by key."""
    ranks: Codes = np.arange(len(keys)) - np.searchsorted(keys, keys)
    return ranks


def _sorted(rows: _Candidates, order: Mapping[str, bool]) -> Places:
    """The rows key by key, each in order, then by arrival. As in SQL, null is the least value, and NaN the greatest."""
    columns = {"key": pa.array(rows.keys)}
    directions = [("key", "ascending")]
    for number, (name, is_descending) in enumerate(order.items()):
        values = rows.rows.column(name)
        kinds = pc.if_else(values.is_valid(), 1, 0)
        if pa.types.is_floating(values.type):
            kinds = pc.if_else(pc.is_nan(values).fill_null(False), 2, kinds)  # noqa: FBT003  Arrow's signature
        direction = "descending" if is_descending else "ascending"
        columns |= {f"kind {number}": kinds, f"value {number}": values}
        directions += [(f"kind {number}", direction), (f"value {number}", direction)]
    columns["id"] = pa.array(rows.ids)
    found: Places = pc.sort_indices(pa.table(columns), sort_keys=[*directions, ("id", "ascending")]).to_numpy()
    return found.astype(np.int64)
