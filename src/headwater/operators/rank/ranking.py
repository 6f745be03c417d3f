"""Rows in the order by which they are ranked, those of many keys at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.graph.nodes.ranks import Ranking
from headwater.operators.grouping import Codes
from headwater.operators.join.keys import JoinKeys
from headwater.operators.join.run import RowIds
from headwater.operators.join.store import RowStore
from headwater.state.columns import Places


@dataclass(frozen=True)
class Candidates:
    """Rows that may have a rank: each with its key's number in the batch, and its number of arrival."""

    rows: pa.Table
    keys: Codes
    ids: Places

    def take(self, at: Places) -> Candidates:
        return Candidates(self.rows.take(pa.array(at)), self.keys[at], self.ids[at])

    def and_also(self, others: Candidates) -> Candidates:
        return Candidates(
            pa.concat_tables([self.rows, others.rows]),
            np.concatenate([self.keys, others.keys]),
            np.concatenate([self.ids, others.ids]),
        )


def kept_of(store: RowStore, keys: JoinKeys) -> Candidates:
    """The rows that are kept of these keys."""
    found = [*store.find(keys), store.nothing(len(keys))]
    return Candidates(
        pa.concat_tables([part.rows for part in found]),
        np.concatenate([part.probes for part in found]),
        np.concatenate([part.ids for part in found]),
    )


@dataclass(frozen=True)
class Outdone:
    """Rows that are behind the last rank: their numbers of arrival, and their keys' numbers in the batch."""

    ids: Places
    keys: Codes

    def kept(self, store: RowStore, keys: JoinKeys) -> RowIds:
        """Those of them that a store has. It is given the keys of the batch."""
        is_kept = self.ids < store.next_id
        return RowIds(self.ids[is_kept], keys.hashes[self.keys[is_kept]])


def ranked(rows: Candidates, ranking: Ranking) -> tuple[Candidates, Outdone]:
    """The rows that are not behind the last rank, in the order of keys and ranks; and the others."""
    in_order = rows.take(_sorted(rows, ranking))
    has_rank = ranks(in_order.keys) < ranking.n
    outdone = Outdone(in_order.ids[~has_rank], in_order.keys[~has_rank])
    return in_order.take(np.flatnonzero(has_rank)), outdone


def ranks(keys: Codes) -> Codes:
    """The place of each row among those of its key, from 0. Rows come key by key."""
    found: Codes = np.arange(len(keys)) - np.searchsorted(keys, keys)
    return found


def _sorted(rows: Candidates, ranking: Ranking) -> Places:
    """The rows key by key, each in order, then by arrival. As in SQL, null is the least value, and NaN the greatest."""
    columns = {"key": pa.array(rows.keys)}
    directions = [("key", "ascending")]
    for number, (name, is_descending) in enumerate(ranking.order.items()):
        values = rows.rows.column(name)
        kinds = pc.if_else(values.is_valid(), 1, 3 if name in ranking.nulls_flipped else 0)
        if pa.types.is_floating(values.type):
            kinds = pc.if_else(pc.is_nan(values).fill_null(False), 2, kinds)  # noqa: FBT003  Arrow's signature
        direction = "descending" if is_descending else "ascending"
        columns |= {f"kind {number}": kinds, f"value {number}": values}
        directions += [(f"kind {number}", direction), (f"value {number}", direction)]
    columns["id"] = pa.array(rows.ids)
    found: Places = pc.sort_indices(pa.table(columns), sort_keys=[*directions, ("id", "ascending")]).to_numpy()
    return found.astype(np.int64)
