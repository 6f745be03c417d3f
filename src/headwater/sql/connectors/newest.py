"""Topics in which the newest record of a key counts, as rows that replace others and rows that take them away."""

from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.connectors.contract import Source
from headwater.connectors.formats import JsonFormat, Undecodable
from headwater.data.row_kinds import ROW_KIND
from headwater.data.schema import Schema
from headwater.errors import SourceError
from headwater.sql.connectors.changes import ChangesSource


class NewestSource(ChangesSource):
    """A record with a value replaces the row of its key, one without takes it away: then the key is all that is known."""

    KEY: ClassVar = "__key"
    """The column of records that has their key."""

    def __init__(self, records: Source, key: tuple[str, ...], metadata: tuple[str, ...]) -> None:
        super().__init__(records)
        self._key, self._metadata = key, metadata

    def record_schema(self, rows: Schema) -> Schema:
        kept = [field for field in rows.arrow if field.name != ROW_KIND]
        return Schema(pa.schema([*kept, pa.field(self.KEY, pa.binary())]))

    def changes(self, records: pa.RecordBatch, rows: pa.Schema) -> pa.RecordBatch:
        columns = {name: records.column(name) for name in records.schema.names}
        told = [columns[name].is_valid() for name in rows.names if name != ROW_KIND and name not in self._metadata]
        is_gone = ~np.any([one.to_numpy(zero_copy_only=False) for one in told], axis=0)
        if is_gone.any():
            fields = pa.schema([pa.field(name, rows.field(name).type) for name in self._key])
            keys = self._keys(columns[self.KEY].filter(pa.array(is_gone)).to_pylist(), fields)
            places = pa.array(np.cumsum(is_gone) - 1, mask=~is_gone)
            for name in self._key:
                found = keys.column(name).combine_chunks().take(places)
                columns[name] = pc.if_else(pa.array(is_gone), found, columns[name])
        columns[ROW_KIND] = pa.array(np.where(is_gone, "-D", "+U"), pa.string())
        return pa.RecordBatch.from_arrays([columns[name] for name in rows.names], schema=rows)

    def _keys(self, given: list[bytes | None], schema: pa.Schema) -> pa.Table:
        """The key columns of records that have a key and no more: text of one column, or an object of several."""
        try:
            return JsonFormat().decode([_as_object(key or b"", schema) for key in given], schema)
        except (Undecodable, UnicodeDecodeError) as error:
            raise SourceError.unreadable(
                self.describe(), f"the key of a record without value cannot be read: {error}", "mend the PRIMARY KEY"
            ) from None


def _as_object(key: bytes, schema: pa.Schema) -> bytes:
    if len(schema) > 1:
        return key
    field = schema.field(0)
    is_plain = pa.types.is_integer(field.type) or pa.types.is_boolean(field.type) or pa.types.is_floating(field.type)
    text = key.decode() if is_plain else json.dumps(key.decode())
    return f"{{{json.dumps(field.name)}: {text}}}".encode()
