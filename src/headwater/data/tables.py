"""Tables in memory, of whoever made them, as streams carry them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from headwater.data.schema import Schema, type_ddl
from headwater.errors import GraphError, SchemaError

_TEXT = (pa.types.is_large_string, pa.types.is_string_view)
_BYTES = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
_LISTS = (pa.types.is_list, pa.types.is_large_list, pa.types.is_list_view, pa.types.is_fixed_size_list)
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.int64(),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}


def is_table(table: Any) -> bool:
    """Whether this is a table in memory, or a static DataFrame of Spark's; only duck types, so that nothing is imported."""
    return not isinstance(table, type) and (hasattr(table, "toArrow") or hasattr(table, "__arrow_c_stream__"))


def arrow_table(step: str, given: Any, wanted: list[str] | None = None) -> pa.Table:
    """A table of types that streams have, with its values as they are; an index that pandas made is left out.

    Of a table with columns that no stream can carry, those that are wanted can be had.
    """
    if getattr(given, "isStreaming", False):
        raise GraphError.bad_argument(
            step, "looks rows up in a table that stands still", "a streaming DataFrame", "pass a static one"
        )
    table = _exported(step, given)
    found = [name for name in table.column_names if not name.startswith("__index_level_")]
    for name in wanted or ():
        if name not in found:
            raise SchemaError.no_field(name, found, step)
    table = table.select(found if wanted is None else wanted).replace_schema_metadata(None)
    try:
        table.validate(full=True)  # what is made of buffers may be anything, also no table
    except pa.ArrowException as error:
        raise SchemaError.does_not_fit(step, f"the table is damaged: {error}", "mend such rows in the table") from None
    fields = [pa.field(f.name, _carried(f.type), f.nullable) for f in table.schema]
    for field in fields:
        _check_carried(step, field)
    Schema.of(pa.schema(fields))  # refuses names that no stream can have
    columns = []
    for column, field in zip(table.columns, fields, strict=True):
        try:
            columns.append(column.cast(_without_views(column.type)).cast(field.type))
        except pa.ArrowException as error:
            raise SchemaError.does_not_fit(
                step, f"column {field.name!r} of the table cannot be {field.type}: {error}", "cast it in the table"
            ) from None
    return pa.Table.from_arrays(columns, schema=pa.schema(fields)).combine_chunks()


def _exported(step: str, given: Any) -> pa.Table:
    try:
        return given.toArrow() if hasattr(given, "toArrow") else pa.table(given)
    except pa.ArrowException:  # one column exports a stream too, of values instead of rows
        raise GraphError.bad_argument(
            step,
            "needs a table, of columns with names",
            type(given).__name__,
            "pass a table, such as series.to_frame()",
        ) from None


def _check_carried(step: str, field: pa.Field) -> None:
    try:
        type_ddl(field.type)
    except SchemaError as error:
        raise SchemaError.of_column(field.name, f" of the table of step {step!r}", error) from None


def _carried(dtype: pa.DataType) -> pa.DataType:
    """The type in which streams carry the values of an Arrow type."""
    if pa.types.is_dictionary(dtype):
        return _carried(dtype.value_type)
    if _is_any(dtype, _TEXT):
        return pa.string()
    if _is_any(dtype, _BYTES):
        return pa.binary()
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", "UTC" if dtype.tz else None)
    if pa.types.is_duration(dtype):
        return pa.duration("us")
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _carried(f.type), f.nullable) for f in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(_carried(dtype.key_type), _carried(dtype.item_type))
    if _is_any(dtype, _LISTS):
        return pa.list_(_carried(dtype.value_type))
    return _WIDER.get(dtype, dtype)


def _without_views(dtype: pa.DataType) -> pa.DataType:
    """The type, with dictionaries of text in one piece: Arrow takes no values out of those that hold views of it."""
    if pa.types.is_dictionary(dtype):
        return pa.dictionary(dtype.index_type, _carried(dtype.value_type), dtype.ordered)
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(f.name, _without_views(f.type), f.nullable) for f in dtype])
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return pa.list_(_without_views(dtype.value_type))
    return dtype


def _is_any(dtype: pa.DataType, tests: Iterable[Callable[[pa.DataType], bool]]) -> bool:
    return any(test(dtype) for test in tests)
