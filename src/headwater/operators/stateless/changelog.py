"""Where changelogs begin and end: a column becomes what rows do, and what rows do becomes a column."""

from __future__ import annotations

from headwater.data.batch import Batch
from headwater.data.row_kinds import ROW_KIND, ROW_KIND_FIELD, UPDATE_BEFORE, inserts, kind_names, read_kinds
from headwater.data.rows import Row
from headwater.errors import RowError
from headwater.graph.nodes import AsChangelogNode, WithRowKindNode
from headwater.operators.stateless.functions import Outputs


class AsChangelogOperator:
    """Takes what rows do from their column `row_kind`; without that column every row is one that replaces another."""

    def __init__(self, node: AsChangelogNode, step: str, row: type[Row]) -> None:
        self._node, self._step = node, step

    def apply(self, batch: Batch) -> Outputs:
        if not self._node.reads_kinds:
            return [(None, Batch(batch.table, batch.timestamps, kinds=inserts(len(batch))))]
        kinds = read_kinds(batch.table, self._step)
        if self._node.changelog.key and (kinds == UPDATE_BEFORE).any():
            raise RowError.value_does_not_fit(
                self._step,
                ROW_KIND,
                "-U",
                "+I, +U or -D",
                "a changelog by key tells only the row that is valid from now on",
            )
        return [(None, Batch(batch.table.drop_columns([ROW_KIND]), batch.timestamps, kinds=kinds))]


class WithRowKindOperator:
    """Puts what rows do into a column `row_kind`, so that the changes are rows like others."""

    def __init__(self, node: WithRowKindNode, step: str, row: type[Row]) -> None:
        pass

    def apply(self, batch: Batch) -> Outputs:
        kinds = inserts(len(batch)) if batch.kinds is None else batch.kinds
        return [(None, Batch(batch.table.append_column(ROW_KIND_FIELD, kind_names(kinds)), batch.timestamps))]
