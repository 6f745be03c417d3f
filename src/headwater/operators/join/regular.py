"""The regular join: all rows of both sides are kept, and what they give is told as a changelog."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch, Timestamps
from headwater.data.row_kinds import DELETE, INSERT, Kinds, adds, inserts
from headwater.data.rows import Row
from headwater.graph.edges import Key
from headwater.graph.nodes import RegularJoinNode
from headwater.operators.contract import Emit, StepTime, TwoInputs
from headwater.operators.join.columns import PairColumns
from headwater.operators.join.contents import first_equal
from headwater.operators.join.keeping import KeepsRows
from headwater.operators.join.keys import JoinKeys, can_meet, key_names, keys_in, stored_schema, with_key_column
from headwater.operators.join.net import Flags, Net, net_effect
from headwater.operators.join.run import Places, RowIds
from headwater.operators.join.store import RowStore
from headwater.state.backend import StateBackend
from headwater.state.memory_backend import MEMORY
from headwater.state.shelf import Shelf

_BEFORE, _PAIR, _AFTER, _ALONE = range(4)
"""What a row of the result is: a padded row of the other side that goes before a pair comes, a pair, a padded row that
comes after a pair has gone, or a padded row of this side."""


@dataclass(frozen=True)
class _Arrived:
    """The rows of an epoch on one side, with the columns in which they are kept."""

    rows: pa.Table
    times: Timestamps
    kinds: Kinds
    keys: JoinKeys
    can_meet: Flags


@dataclass(frozen=True)
class _Shown:
    """Rows of the result that come or go, in the order in which they are told."""

    ours: Places
    """The row that arrived and makes it so."""
    theirs: Places
    """The row that was found for it."""
    turns: Places

    @classmethod
    def of(cls, at: Places, before: Places, pairs: Places, after: Places, alone: Places) -> _Shown:
        """Of the rows found, which were found for the rows `at`, those of each kind; and the rows that are alone."""
        if len(before) == len(after) == len(alone) == 0:
            return cls(at[pairs], pairs, np.full(len(pairs), _PAIR))
        theirs = np.concatenate([before, pairs, after, np.zeros_like(alone)])
        ours = np.concatenate([at[before], at[pairs], at[after], alone])
        turns = np.repeat([_BEFORE, _PAIR, _AFTER, _ALONE], [len(before), len(pairs), len(after), len(alone)])
        order = np.lexsort((turns, theirs, ours))
        return cls(ours[order], theirs[order], turns[order])


class _Side:
    """One side. A row of an outer side is marked while it has met others, so that its padded row is not in the result.

    Rows are kept with the processing time at which they came.
    """

    def __init__(self, key: Key, rows: pa.Schema, shelf: Shelf, *, is_outer: bool, is_changelog: bool) -> None:
        self.is_outer, self.is_changelog = is_outer, is_changelog
        self._key, self._schema = key, stored_schema(rows, key)
        self.names = key_names(key)
        self.store = RowStore(self._schema, self.names, shelf)

    def read(self, batch: Batch) -> _Arrived:
        """The rows that matter: those without a key can meet none, and only an outer side shows them."""
        kinds = inserts(len(batch)) if batch.kinds is None else batch.kinds
        rows, times = with_key_column(batch, self._key).table.select(self._schema.names), batch.timestamps
        meets = can_meet(rows, self.names)
        if not self.is_outer and not meets.all():
            kept = np.flatnonzero(meets)
            rows, times, kinds, meets = rows.take(pa.array(kept)), times[kept], kinds[kept], meets[kept]
        return _Arrived(rows, times, kinds, keys_in(rows, self.names), meets)

    def keep(self, arrived: _Arrived, added: Places, has_met: Flags, now_ms: int) -> None:
        """Keep new rows. Those without a key are of use only where they may be taken back."""
        kept = added if self.is_changelog else added[arrived.can_meet[added]]
        rows, keys = arrived.rows.take(pa.array(kept)), arrived.keys.take(kept)
        self.store.add(rows, np.full(len(kept), now_ms), keys, has_met[kept] & self.is_outer)


class RegularJoinOperator(KeepsRows):
    """Runs one regular join on one subtask: the left rows of an epoch, then the right ones.

    The result holds the pairs of rows with equal keys, and for a row of an outer side that has met none, the row padded
    with nulls. Each row of input is told by what it changes there; what comes and goes in an epoch is not told.
    """

    def __init__(
        self, node: RegularJoinNode, step: str, left: type[Row], right: type[Row], *, backend: StateBackend = MEMORY
    ) -> None:
        self._node = node
        self.needs_order = node.left_changes or node.right_changes
        self._left = _Side(
            node.key,
            node.left_schema.arrow,
            backend.shelf,
            is_outer=node.how in ("left", "full"),
            is_changelog=node.left_changes,
        )
        self._right = _Side(
            node.right_key,
            node.right_schema.arrow,
            backend.shelf,
            is_outer=node.how in ("right", "full"),
            is_changelog=node.right_changes,
        )
        self._columns = PairColumns(node, left_may_lack=self._right.is_outer)
        forgets = any(ttl_ms is not None for ttl_ms in node.ttls_ms)
        super().__init__({"left": self._left.store, "right": self._right.store}, forgets=forgets)

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        self._expire(time.now_ms)
        for batch, side, other in ((inputs.left, self._left, self._right), (inputs.right, self._right, self._left)):
            if batch is None:
                continue
            arrived = side.read(batch)
            net = net_effect(arrived.rows, adds(arrived.kinds), side.store)
            self._dropped.count(net.missed)
            side.store.remove(RowIds(net.ids, arrived.keys.hashes[net.removed]))
            has_met = self._meet(arrived, net, side, other, emit)
            side.keep(arrived, net.added, has_met, time.now_ms)

    def _meet(self, arrived: _Arrived, net: Net, side: _Side, other: _Side, emit: Emit) -> Flags:
        """Tell, in the order of the rows, the pairs and padded rows that come and go; says which rows met any."""
        size = len(arrived.rows)
        changes, lonely, has_met = (np.zeros(size, np.bool_) for _ in range(3))
        changes[net.added] = changes[net.removed] = True
        lonely[net.added], lonely[net.removed] = side.is_outer, side.is_outer & ~net.marked
        opens, closes = _turning_points(arrived, net, side) if other.is_outer else (np.zeros_like(changes),) * 2
        probes = np.flatnonzero((changes | closes) & arrived.can_meet)
        told = 0
        for found in chain(other.store.find(arrived.keys.take(probes)), [other.store.nothing(len(probes))]):
            at = probes[found.probes]
            has_met[at] = True
            until = probes[found.until] if found.until < len(probes) else size
            alone = told + np.flatnonzero(lonely[told:until] & ~has_met[told:until])
            before, after = np.flatnonzero(opens[at] & ~found.marked), np.flatnonzero(closes[at] & found.marked)
            other.store.mark(found.named.take(before))
            other.store.mark(found.named.take(after), on=False)
            shown = _Shown.of(at, before, np.flatnonzero(changes[at]), after, alone)
            if len(shown.ours):
                self._tell(shown, arrived, found.rows, (side, other), emit)
            told = until
        return has_met

    def _tell(self, shown: _Shown, arrived: _Arrived, found: pa.Table, sides: tuple[_Side, _Side], emit: Emit) -> None:
        side, other = sides
        kinds = _kinds_of_pairs(arrived.kinds[shown.ours], side, other)
        kinds = np.choose(shown.turns, [DELETE, kinds, INSERT, kinds])
        ours = arrived.rows.take(pa.array(shown.ours, mask=(shown.turns == _BEFORE) | (shown.turns == _AFTER)))
        theirs = found.take(pa.array(shown.theirs, mask=shown.turns == _ALONE))
        columns = self._columns.of(ours, theirs) if side is self._left else self._columns.of(theirs, ours)
        table = pa.Table.from_arrays(columns, schema=self._node.schema.arrow)
        told = None if self._node.changelog.is_append_only else kinds.astype(np.int8)
        emit(None, Batch(table, arrived.times[shown.ours], kinds=told))

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        self._expire(time.now_ms)

    def _expire(self, now_ms: int) -> None:
        for side, ttl_ms in zip((self._left, self._right), self._node.ttls_ms, strict=True):
            if ttl_ms is not None:
                self._forget(side.store, now_ms - ttl_ms)


def _turning_points(arrived: _Arrived, net: Net, side: _Side) -> tuple[Flags, Flags]:
    """The first row by which a key comes to have rows on a side, and the last by which it comes to have none.

    Of a key that has rows in the end, the first is the first that is added, whether or not there were others before.
    """
    opens, closes = np.zeros(len(arrived.rows), np.bool_), np.zeros(len(arrived.rows), np.bool_)
    same = first_equal(arrived.rows.select(side.names))
    _, firsts = np.unique(same[net.added], return_index=True)
    opens[net.added[firsts]] = True
    last = np.full(len(same), -1)
    np.maximum.at(last, same[net.retracted], net.retracted)
    last[same[net.added]] = -1
    last = np.sort(last[last >= 0])
    closes[last] = ~side.store.has(arrived.keys.take(last))
    return opens, closes


def _kinds_of_pairs(kinds: Kinds, side: _Side, other: _Side) -> Kinds:
    """The kinds of the pairs that rows make, as Flink gives them: those of the rows where no padded row is at stake."""
    adding = adds(kinds)
    if side.is_outer:
        return np.where(adding, INSERT, DELETE)
    return np.where(adding, INSERT, kinds) if other.is_outer else kinds
