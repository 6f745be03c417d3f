"""Rows of both sides put next to each other."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headwater.graph.nodes import JoinNode


class PairColumns:
    """The columns that a join gives: the left ones, then those of the right that are not the key under the same name."""

    def __init__(self, node: JoinNode, *, left_may_lack: bool = False) -> None:
        """`left_may_lack` is whether rows may have no left side; their key is then taken from the right."""
        self._left_names, self._right_names = node.left_schema.names, node.right_columns
        shown_once = set(node.right_schema.names) - set(node.right_columns)
        self._from_either = shown_once if left_may_lack else set()

    def of(self, left: pa.Table, right: pa.Table) -> list[pa.ChunkedArray]:
        """The columns; a side that a row does not have is null in all of its own."""
        return [
            *(self._left_column(name, left, right) for name in self._left_names),
            *(right.column(name) for name in self._right_names),
        ]

    def _left_column(self, name: str, left: pa.Table, right: pa.Table) -> pa.ChunkedArray:
        column = left.column(name)
        return pc.coalesce(column, right.column(name)) if name in self._from_either else column


def taken(rows: pa.Table, places: npt.NDArray[np.int64]) -> pa.Table:
    """The rows at these places; where a place is negative, one of nulls."""
    is_missing = places < 0
    return rows.take(pa.array(places, mask=is_missing) if is_missing.any() else pa.array(places))
