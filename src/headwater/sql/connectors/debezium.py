"""'format' = 'debezium-json': what a database tells of its changes, as Debezium writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.connectors.contract import Source
from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema
from headwater.errors import SourceError
from headwater.sql.connectors.changes import ChangesSource
from headwater.sql.connectors.contract import Wanted

_OPS = ("c", "r", "u", "d")


class DebeziumSource(ChangesSource):
    """`before`, `after` and `op` of each record. A change is two rows, or one where rows are found by their key."""

    def __init__(self, records: Source, *, by_key: bool, in_payload: bool, metadata: Mapping[str, str]) -> None:
        super().__init__(records)
        self._by_key, self._in_payload, self._metadata = by_key, in_payload, dict(metadata)

    def record_schema(self, rows: Schema) -> Schema:
        kept = [field for field in rows.arrow if field.name in self._metadata]
        row = pa.struct([f for f in rows.arrow if f.name not in self._metadata and f.name != ROW_KIND])
        told = [pa.field("before", row), pa.field("after", row), pa.field("op", pa.string())]
        return Schema(pa.schema([*kept, *([pa.field("payload", pa.struct(told))] if self._in_payload else told)]))

    def changes(self, records: pa.RecordBatch, rows: pa.Schema) -> pa.RecordBatch:
        told = records.column("payload") if self._in_payload else records
        before, after, op = (_part(told, name) for name in ("before", "after", "op"))
        self._check(op)
        places = np.arange(len(records))
        is_new, is_change, is_gone = (
            pc.is_in(op, value_set=pa.array(ops)).to_numpy(zero_copy_only=False) for ops in (["c", "r"], ["u"], ["d"])
        )
        self._check_told(after, is_new | is_change, "after")
        self._check_told(before, is_gone if self._by_key else is_gone | is_change, "before")
        parts = [(after, is_new, "+I", 0), (after, is_change, "+U", 1), (before, is_gone, "-D", 0)]
        if not self._by_key:
            parts.append((before, is_change, "-U", 0))
        taken = np.concatenate([places[chosen] for _, chosen, _, _ in parts])
        within = np.concatenate([np.full(chosen.sum(), rank) for _, chosen, _, rank in parts])
        order = np.lexsort((within, taken))
        whole = pa.concat_arrays([values.filter(pa.array(chosen)) for values, chosen, _, _ in parts]).take(order)
        kinds = pa.array(np.repeat([kind for *_, kind, _ in parts], [chosen.sum() for _, chosen, _, _ in parts]))
        columns = []
        for field in rows:
            if field.name == ROW_KIND:
                columns.append(kinds.cast(pa.string()).take(order))
            elif field.name in self._metadata:
                columns.append(records.column(field.name).take(taken[order]))
            else:
                columns.append(pc.struct_field(whole, field.name))
        return pa.RecordBatch.from_arrays(columns, schema=rows)

    def _check(self, op: pa.Array) -> None:
        odd = op.filter(pc.invert(pc.is_in(op, value_set=pa.array([*_OPS, None], pa.string()))))
        if len(odd):
            raise SourceError.unreadable(
                self.describe(), f"op is {odd[0].as_py()!r}", f"changes of Debezium are one of {', '.join(_OPS)}"
            )

    def _check_told(self, values: pa.Array, chosen: Any, what: str) -> None:
        if values.filter(pa.array(chosen)).null_count:
            raise SourceError.unreadable(
                self.describe(),
                f"{what!r} is null where a row is changed or goes",
                "declare the PRIMARY KEY, or let the database tell whole rows (REPLICA IDENTITY FULL)",
            )


def debezium(wanted: Wanted, records: Source) -> DebeziumSource:
    """The changes in records of JSON, as the options of the format say."""
    in_payload = wanted.options.flag("debezium-json.schema-include", default=False)
    return DebeziumSource(records, by_key=bool(wanted.primary_key), in_payload=in_payload, metadata=wanted.metadata)


def _part(told: Any, name: str) -> pa.Array:
    return told.column(name) if isinstance(told, pa.RecordBatch) else pc.struct_field(told, name)
