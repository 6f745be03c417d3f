"""Rows together with what a table outside the job holds for their keys, whole batches at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headwater.data.batch import Batch
from headwater.data.rows import Row, decode, encode_rows, make_rows, row_class
from headwater.errors import RowError
from headwater.graph.nodes import LookupJoinNode
from headwater.lookups import Lookup, LookupTable
from headwater.operators.grouping import group
from headwater.operators.keys import is_whole
from headwater.operators.lookup.cache import LookupCache, Rows
from headwater.operators.lookup.key_index import Found, KeyIndex, key_parts, ranges
from headwater.operators.pairs import places_of_pairs
from headwater.operators.stateless.functions import Outputs
from headwater.operators.user_code import user_code_failed


class LookupJoinOperator:
    """Finds the rows of a batch's keys on the other side and puts the two together, in the order of the batch."""

    def __init__(self, node: LookupJoinNode, step: str, row: type[Row]) -> None:
        self._node, self._step = node, step
        self._side = _side_of(node, step)
        self._now_ms = 0

    def begin(self, now_ms: int) -> None:
        """An epoch begins: what was looked up ages by its time."""
        self._now_ms = now_ms

    def apply(self, batch: Batch) -> Outputs:
        found = self._side.find(batch.table, self._now_ms)
        if self._node.condition is not None:
            found = self._paired(batch, found, self._node.condition)
        counts = found.counts
        missing = None
        if self._node.keeps_unmatched:
            counts = np.maximum(counts, 1)
            missing = np.repeat(found.counts == 0, counts)
        places = found.places
        if missing is not None and missing.any():
            places = np.zeros(len(missing), np.int64)
            places[~missing] = found.places
        right = found.rows.take(pa.array(places, mask=missing))
        left = batch if (counts == 1).all() else batch.take(np.repeat(np.arange(len(batch)), counts))
        columns = [*left.table.columns, *right.columns]
        table = pa.Table.from_arrays(columns, schema=self._node.schema.arrow)
        return [(None, Batch(table, left.timestamps, kinds=left.kinds))]

    def _paired(self, batch: Batch, found: Found, condition: str) -> Found:
        """What was found, without pairs for which the condition is not true."""
        left = np.repeat(np.arange(len(batch)), found.counts)
        columns = [*batch.table.take(pa.array(left)).columns, *found.rows.take(pa.array(found.places)).columns]
        pairs = pa.Table.from_arrays(columns, names=self._node.schema.names)
        kept = places_of_pairs(condition, pairs, self._step, self._now_ms)
        return Found(np.bincount(left[kept], minlength=len(batch)), found.places[kept], found.rows)

    def close(self) -> None:
        """Let go of the table."""
        self._side.close()


class _Side(Protocol):
    """The right side of the join."""

    def find(self, table: pa.Table, now_ms: int) -> Found:
        """The rows for the keys of these rows, none for a key with a null in it."""

    def close(self) -> None:
        """Let go of what is open."""


def _side_of(node: LookupJoinNode, step: str) -> _Side:
    if isinstance(node.right, pa.Table):
        return _Static(node)
    if isinstance(node.right, LookupTable):
        lookup: Lookup = node.right.open(step, node.right_keys, node.right_schema.names)
        return _Loaded(node, step, lookup) if node.cache == "full" else _Asked(node, step, lookup)
    return _Asked(node, step, _FunctionLookup(node.right, step))


class _Static:
    """A table that came with the plan, indexed when the first rows come."""

    def __init__(self, node: LookupJoinNode) -> None:
        self._node = node
        self._index: KeyIndex | None = None

    def find(self, table: pa.Table, now_ms: int) -> Found:
        if self._index is None:
            self._index = index_of(self._node.right, self._node)
        return self._index.find(key_parts(table, self._node.keys, self._node.key_types), len(table))

    def close(self) -> None:
        """Nothing is open."""


class _Loaded:
    """The whole of a table outside, loaded with the first rows, and again when it is too old."""

    def __init__(self, node: LookupJoinNode, step: str, lookup: Lookup) -> None:
        self._node, self._step, self._lookup = node, step, lookup
        fields = dict(zip(node.right_keys, map(pa.field, node.right_keys, node.key_types), strict=True))
        self._schema = pa.schema(list({**fields, **{field.name: field for field in node.right_schema.arrow}}.values()))
        self._index: KeyIndex | None = None
        self._loaded_ms = 0

    def find(self, table: pa.Table, now_ms: int) -> Found:
        ttl_ms = self._node.ttl_ms
        if self._index is None or (ttl_ms is not None and now_ms - self._loaded_ms >= ttl_ms):
            pieces = [encode_rows(rows, self._schema, self._step) for rows in self._lookup.load()]
            self._index = index_of(pa.concat_tables([self._schema.empty_table(), *pieces]), self._node)
            self._loaded_ms = now_ms
        return self._index.find(key_parts(table, self._node.keys, self._node.key_types), len(table))

    def close(self) -> None:
        self._lookup.close()


class _Asked:
    """A table or function that is asked, once a batch, for the keys that are not at hand."""

    def __init__(self, node: LookupJoinNode, step: str, lookup: Lookup | _FunctionLookup) -> None:
        self._node, self._step, self._lookup = node, step, lookup
        self._cache = LookupCache(node.cache, node.ttl_ms) if isinstance(node.cache, int) else None

    def find(self, table: pa.Table, now_ms: int) -> Found:
        node = self._node
        parts = key_parts(table, node.keys, node.key_types)
        whole = np.flatnonzero(is_whole(parts, len(table)))
        groups = group([part.take(pa.array(whole)) for part in parts], len(whole))
        keys = self._keys(table.select(list(node.keys)).take(pa.array(whole[groups.first])))
        known = {} if self._cache is None else self._cache.get(keys, now_ms)
        asked = [key for key in keys if key not in known]
        fresh = dict(zip(asked, self._lookup.find(asked), strict=True)) if asked else {}
        of_key = [known[key] if key in known else fresh[key] for key in keys]
        rows = encode_rows([row for rows in of_key for row in rows], node.right_schema.arrow, self._step)
        if self._cache is not None:
            self._cache.put(fresh, now_ms)
        sizes = np.fromiter(map(len, of_key), np.int64, len(of_key))
        counts = np.zeros(len(table), np.int64)
        counts[whole] = sizes[groups.codes]
        starts = (np.cumsum(sizes) - sizes)[groups.codes]
        return Found(counts, ranges(starts, counts[whole]), rows)

    def close(self) -> None:
        self._lookup.close()

    def _keys(self, table: pa.Table) -> list[Any]:
        columns = [
            decode(table.column(name).cast(dtype))
            for name, dtype in zip(self._node.keys, self._node.key_types, strict=True)
        ]
        return columns[0] if len(columns) == 1 else list(make_rows(row_class(self._node.keys), columns))


class _FunctionLookup:
    """A user's function from keys to rows."""

    def __init__(self, function: Callable[[list[Any]], Mapping[Any, Any]], step: str) -> None:
        self._function, self._step = function, step

    def find(self, keys: Sequence[Any]) -> list[Rows]:
        try:
            found = self._function(list(keys))
        except BaseException as error:
            raise user_code_failed(error, self._step) from None
        if not isinstance(found, Mapping):
            kind = type(found).__name__
            raise RowError.wrong_result(
                self._step, "a dict of keys and their rows", kind, "return one, also if it is empty"
            )
        return [_rows(found.get(key)) for key in keys]

    def close(self) -> None:
        """Nothing is open."""


def index_of(table: pa.Table, node: LookupJoinNode) -> KeyIndex:
    """The index of a table that has the node's right keys and columns."""
    return KeyIndex(table, node.right_keys, node.key_types, node.right_schema.names)


def _rows(given: Any) -> Rows:
    """What a function gives for a key: nothing, a row, or a list of rows."""
    if given is None:
        return ()
    return tuple(given) if isinstance(given, list) else (given,)
