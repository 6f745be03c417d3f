"""Rows of records: the parts of a record that metadata names, and the value by its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headwater.connectors.formats import Format, Undecodable, sifted, sound
from headwater.connectors.formats.raw import text_or_bytes
from headwater.data.schema import Schema, parse_type, type_ddl
from headwater.data.sound import LAST_MICROS
from headwater.errors import GraphError

if TYPE_CHECKING:
    from confluent_kafka import Message

NO_TIMESTAMP = 0
"""As the client says that a record has none."""
_HEADERS = parse_type("array<struct<key: string, value: binary>>")
_TIME = pa.timestamp("us", "UTC")
_TEXTS = (pa.string(), pa.binary())
PARTS: dict[str, tuple[pa.DataType, ...]] = {
    "key": _TEXTS,
    "timestamp": (_TIME,),
    "headers": (_HEADERS,),
    "topic": (pa.string(),),
    "partition": (pa.int32(),),
    "offset": (pa.int64(),),
}
"""Parts of a record beside its value, and the types of columns that hold them."""


class RecordDecoder:
    """Turns records into rows of a schema. A record without a value has nulls where the value's columns are."""

    def __init__(self, schema: Schema, format: Format, metadata: Mapping[str, str]) -> None:  # noqa: A002
        self.schema = schema.arrow
        self._format = format
        self._metadata = metadata
        for column, part in metadata.items():
            allowed = PARTS[part]
            if (found := schema.field(column).type) not in allowed:
                raise GraphError.bad_argument(
                    "kafka",
                    f"puts a record's {part} into a column of type {' or '.join(map(type_ddl, allowed))}",
                    f"{column} {type_ddl(found)}",
                    "declare it so",
                )
        self._values = pa.schema([field for field in schema.arrow if field.name not in metadata])
        if len(self._values):
            format.check(self._values, "kafka")
        self._nullable = pa.schema([pa.field(field.name, field.type) for field in self._values])
        self._required = [field.name for field in schema.arrow if not field.nullable]

    def rows(self, records: Sequence[Message]) -> Iterator[pa.RecordBatch | tuple[Message, str]]:
        """Rows in order and, in their places, records that cannot be read, each with the reason."""
        return sifted(records, self._decode)

    def _decode(self, records: Sequence[Message]) -> pa.RecordBatch:
        columns = {name: _PART[part](records, self.schema.field(name).type) for name, part in self._metadata.items()}
        if len(self._values):
            table = self._decoded_values(records)
            columns |= {name: table.column(name).combine_chunks() for name in table.column_names}
        for name in self._required:
            if columns[name].null_count:
                raise Undecodable(f"{name!r} is null, and declared not null")
        return sound(pa.RecordBatch.from_arrays([columns[name] for name in self.schema.names], schema=self.schema))

    def _decoded_values(self, records: Sequence[Message]) -> pa.Table:
        values = [record.value() for record in records]
        present = [value for value in values if value is not None]
        table = self._format.decode(present, self._nullable) if present else self._nullable.empty_table()
        if len(present) == len(values):
            return table
        places = np.cumsum([value is not None for value in values]) - 1
        return table.take(pa.array(places, mask=np.array([value is None for value in values])))


def _keys(records: Sequence[Message], dtype: pa.DataType) -> pa.Array:
    try:
        return text_or_bytes([record.key() for record in records], dtype)
    except Undecodable:
        raise Undecodable("its key is not UTF-8 text") from None


def _timestamps(records: Sequence[Message], dtype: pa.DataType) -> pa.Array:
    stamps = [record.timestamp() for record in records]
    stamps_ms = np.array([at_ms if kind != NO_TIMESTAMP else -1 for kind, at_ms in stamps], np.int64)
    if stamps_ms.max(initial=0) > LAST_MICROS // 1000:
        raise Undecodable(f"its timestamp is {stamps_ms.max()} ms from 1970, and not of the years 1 to 9999")
    return pa.array(stamps_ms * 1000, mask=stamps_ms < 0).cast(dtype)


def _headers(records: Sequence[Message], dtype: pa.DataType) -> pa.Array:
    return pa.array([[dict(zip(("key", "value"), h, strict=True)) for h in r.headers() or ()] for r in records], dtype)


_PART: dict[str, Callable[[Sequence[Any], pa.DataType], pa.Array]] = {
    "key": _keys,
    "timestamp": _timestamps,
    "headers": _headers,
    "topic": lambda records, dtype: pa.array([record.topic() for record in records], dtype),
    "partition": lambda records, dtype: pa.array([record.partition() for record in records], dtype),
    "offset": lambda records, dtype: pa.array([record.offset() for record in records], dtype),
}
