"""Bringing rows into a topic's schema, without ever changing a value, and cutting them into frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from headwater.data.rows import encode_rows
from headwater.data.sound import fault_in
from headwater.eventlog.errors import LogArgument, LogSchemaMismatch

if TYPE_CHECKING:
    from collections.abc import Callable

Rows: TypeAlias = "pa.Table | pa.RecordBatch | Sequence[Any]"
"""What can be appended."""
FRAME_BYTES = 8 << 20
"""The aim for one frame: large enough that its header and a reader's call vanish, small enough to hold in a worker."""
FRAME_ROWS = 1 << 20
"""Bounds frames of types that take no bytes, such as null."""


def conform(data: Rows, schema: pa.Schema, topic: str) -> pa.Table | pa.RecordBatch:
    """Return `data` with the topic's columns, in its order. A list holds rows as dicts, or tuples in that order.

    Columns are matched by name. Types must be equal, but for encodings of the same values: a dictionary, the large and
    view forms of strings and bytes, and an all-null column without a type.
    """
    if isinstance(data, list | tuple):
        return encode_rows(data, schema, f"append to topic {topic}")
    if not isinstance(data, (pa.Table, pa.RecordBatch)):
        expected = "a pyarrow.Table, a RecordBatch or a list of rows"
        raise LogArgument.of(f"the rows for topic {topic!r}", expected, type(data).__name__)
    if not data.schema.equals(schema):
        data = _matched(data, schema, topic)
    for field, column in zip(schema, data.columns, strict=True):
        if not field.nullable and column.null_count:
            raise LogSchemaMismatch.nulls(topic, field.name, column.null_count)
    if (fault := fault_in(data)) is not None:
        raise LogSchemaMismatch.unsound(topic, fault.column, fault.what)
    return data


def cut(data: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """Return `data` as batches of about `FRAME_BYTES`, none empty."""
    if data.num_rows == 0:
        return []
    size = max(data.nbytes, 1)
    rows = min(max(data.num_rows * FRAME_BYTES // size, 1), FRAME_ROWS)
    if isinstance(data, pa.RecordBatch):
        return [data.slice(at, rows) for at in range(0, data.num_rows, rows)]
    wanted = -(-data.num_rows // rows)
    if max(column.num_chunks for column in data.columns) > wanted:
        data = data.combine_chunks()  # a frame per tiny chunk would cost more than this copy
    return [batch for batch in data.to_batches(max_chunksize=rows) if batch.num_rows]


def _matched(data: pa.Table | pa.RecordBatch, schema: pa.Schema, topic: str) -> pa.Table | pa.RecordBatch:
    given = data.schema.names
    if len(set(given)) != len(given):
        raise LogSchemaMismatch.duplicate(topic, next(name for name in given if given.count(name) > 1))
    for field in schema:
        if field.name not in given:
            raise LogSchemaMismatch.missing(topic, field.name, str(field.type), given)
    for name in given:
        if name not in schema.names:
            raise LogSchemaMismatch.unknown(topic, name, str(data.schema.field(name).type), schema.names)
    columns = [_as_type(data.column(field.name), field, topic) for field in schema]
    return type(data).from_arrays(columns, schema=schema)


def _as_type(column: pa.Array | pa.ChunkedArray, field: pa.Field, topic: str) -> pa.Array | pa.ChunkedArray:
    given, expected = column.type, field.type
    if given.equals(expected):
        return column
    if pa.types.is_null(given) or _same_values(given, expected):
        return column.cast(expected, safe=True)
    raise LogSchemaMismatch.kind(topic, field.name, str(expected), str(given))


def _same_values(given: pa.DataType, expected: pa.DataType) -> bool:
    if pa.types.is_dictionary(given):
        return given.value_type.equals(expected) or _same_values(given.value_type, expected)
    return any(one_of(given) and one_of(expected) for one_of in (_is_text, _is_bytes))


def _any_of(*tests: Callable[[pa.DataType], bool]) -> Callable[[pa.DataType], bool]:
    return lambda kind: any(test(kind) for test in tests)


_is_text = _any_of(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_is_bytes = _any_of(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)
