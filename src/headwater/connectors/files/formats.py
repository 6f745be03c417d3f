"""What is in a file: rows of Parquet, JSON lines or CSV, brought into a schema, and the schema that a file has."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from headwater.connectors.files.parquet import batches_of
from headwater.connectors.files.unpacked import Unpacked, opened, unpacked
from headwater.connectors.formats import JsonFormat, decimals, numbered_rows
from headwater.data.schema import Schema
from headwater.data.sound import fault_in
from headwater.errors import SchemaError

_BLOCK_BYTES = 8 << 20
"""Of text that is decoded at a time."""
_LINE_BYTES = 64 << 20
"""The most that a row may have: what has no end of a line in it is no file of lines."""
_TEXT = {
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.large_binary(),
    pa.binary_view(),
}


def read_parquet(path: Path, schema: pa.Schema, most: Unpacked) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file."""
    for batch in batches_of(path, schema.names):
        fitted = _fitted(batch, schema)
        most.add(fitted.nbytes + len(fitted))  # a column of nothing but nulls may have no bytes
        yield fitted


def read_json(path: Path, schema: pa.Schema, most: Unpacked) -> Iterator[pa.RecordBatch]:
    """The rows of a file of JSON lines; empty lines are none."""
    number, rest = 1, b""
    with unpacked(path, most) as source:
        # Not `read`: where that fails, pyarrow keeps the room that it had made for the block.
        while len(block := source.read_buffer(_BLOCK_BYTES)):
            text = b"".join((rest, block))
            end = text.rfind(b"\n") + 1
            if end:
                lines = pa.py_buffer(text).slice(0, end - 1)
                number += yield from _decoded(lines, schema, number)
            rest = text[end:]
            if len(rest) > _LINE_BYTES:
                raise ValueError(f"line {number} has more than {_LINE_BYTES:,} bytes")
    yield from _decoded(pa.py_buffer(rest), schema, number)


def _decoded(lines: pa.Buffer, schema: pa.Schema, first: int) -> Generator[pa.RecordBatch, None, int]:
    """The rows of some lines, and how many lines there are; `ValueError` names the first line that is none."""
    table = JsonFormat().decode_lines(lines, schema)
    if table is not None and fault_in(table) is None:
        yield from table.to_batches()
        return len(table)
    single = lines.to_pybytes().split(b"\n")
    numbered = [(number, line) for number, line in enumerate(single, first) if line.strip()]
    for rows in numbered_rows(numbered, JsonFormat(), schema):
        if isinstance(rows, pa.RecordBatch):
            yield rows
            continue
        (number, _), reason = rows
        raise ValueError(f"line {number}: {reason}")
    return len(single)


def read_csv(path: Path, schema: pa.Schema, most: Unpacked) -> Iterator[pa.RecordBatch]:
    """The rows of a CSV file with a header. Nothing between two commas is null, and `""` is empty text."""
    types = {field.name: _in_csv(field.type) for field in schema}
    convert = pa_csv.ConvertOptions(
        column_types=types,
        include_columns=schema.names,
        include_missing_columns=True,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    parse, read = pa_csv.ParseOptions(newlines_in_values=True), pa_csv.ReadOptions(block_size=_BLOCK_BYTES)
    with unpacked(path, most) as source:
        if path.stat().st_size == 0:
            return
        with pa_csv.open_csv(source, read_options=read, parse_options=parse, convert_options=convert) as rows:
            for batch in rows:
                yield _fitted(_with_decimals(batch, schema), schema)


READERS: dict[str, Callable[[Path, pa.Schema, Unpacked], Iterator[pa.RecordBatch]]] = {
    "parquet": read_parquet,
    "json": read_json,
    "csv": read_csv,
}


def schema_of(path: Path, format: str) -> pa.Schema:  # noqa: A002  the name users expect
    """The schema that a file has; of text, what its first rows look like."""
    if format == "parquet":
        return pq.read_schema(path)
    with opened(path) as source:
        if format == "json":
            first = source.read(_BLOCK_BYTES)
            whole = first[: first.rfind(b"\n") + 1] or first
            return pa_json.read_json(pa.BufferReader(whole), pa_json.ReadOptions(block_size=len(whole) + 1)).schema
        parse, read = pa_csv.ParseOptions(newlines_in_values=True), pa_csv.ReadOptions(block_size=_BLOCK_BYTES)
        with pa_csv.open_csv(source, read_options=read, parse_options=parse) as rows:
            return rows.schema


def carried(found: pa.Schema) -> Schema:
    """A schema with the types that rows have in a job, nearest to those of a file."""
    fields = []
    for field in found:
        try:
            fields.append(pa.field(field.name, _carried(field.type), field.nullable))
            Schema.of(pa.schema(fields[-1:]))
        except SchemaError as error:
            raise SchemaError.of_column(field.name, "", error) from None
    return Schema.of(pa.schema(fields))


def _in_csv(dtype: pa.DataType) -> pa.DataType:
    """What a column is read as: times first as text, since they may have a zone or none; decimals, to be read exactly."""
    is_text = pa.types.is_timestamp(dtype) or pa.types.is_duration(dtype) or pa.types.is_decimal(dtype)
    return pa.string() if is_text else dtype


def _with_decimals(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch whose decimals are text, with these as decimals."""
    for at, found in enumerate(batch.schema):
        field = schema.field(found.name)
        if pa.types.is_decimal(field.type):
            try:
                batch = batch.set_column(at, field.name, decimals(batch.column(at), field))
            except ValueError as error:
                raise ValueError(f"column {field.name!r}: {error}") from None
    return batch


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with the schema's columns; one that is missing is null."""
    columns = []
    for field in schema:
        at = batch.schema.get_field_index(field.name)
        column = pa.nulls(len(batch), field.type) if at < 0 else _as_type(batch.column(at), field)
        if not field.nullable and column.null_count:
            raise ValueError(f"column {field.name!r} is declared not null, and {column.null_count} values are null")
        columns.append(column)
    fitted = pa.RecordBatch.from_arrays(columns, schema=schema)
    if (fault := fault_in(fitted)) is not None:
        raise ValueError(str(fault))
    return fitted


def _as_type(column: pa.Array, field: pa.Field) -> pa.Array:
    wanted, given = field.type, column.type
    if given.equals(wanted):
        return column
    if pa.types.is_dictionary(given):
        return _as_type(column.dictionary_decode(), field)
    try:
        if pa.types.is_timestamp(wanted):
            return _as_time(column, wanted)
        if pa.types.is_duration(wanted) and _is_text(given):
            return column.cast(pa.int64()).cast(wanted)
        if _is_text(given) != _is_text(wanted) and not pa.types.is_null(given):
            raise ValueError("text is not taken for anything else")
        return column.cast(wanted)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"column {field.name!r} holds {given}, not {wanted}: {error}") from None


def _as_time(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Times in microseconds; of a time without a zone it is said that it is in UTC."""
    if not _is_text(column.type):
        if not pa.types.is_temporal(column.type) and not pa.types.is_null(column.type):
            raise ValueError("a number is not a time")
        return column.cast(wanted, safe=not _is_finer(column.type))
    try:
        return column.cast(wanted)
    except pa.ArrowInvalid:
        if wanted.tz is None:
            raise
        return pc.assume_timezone(column.cast(pa.timestamp("us")), "UTC")


def _is_finer(dtype: pa.DataType) -> bool:
    """Whether a time has digits that microseconds have not, which are cut off."""
    return bool(pa.types.is_timestamp(dtype) and dtype.unit == "ns")


def _is_text(dtype: pa.DataType) -> bool:
    return dtype in _TEXT


def _carried(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(dtype):
        return _carried(dtype.value_type)
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_large_binary(dtype) or pa.types.is_binary_view(dtype) or pa.types.is_fixed_size_binary(dtype):
        return pa.binary()
    if pa.types.is_timestamp(dtype):
        return pa.timestamp("us", "UTC" if dtype.tz else None)
    if pa.types.is_duration(dtype):
        return pa.duration("us")
    if pa.types.is_date(dtype):
        return pa.date32()
    if pa.types.is_float16(dtype):
        return pa.float32()
    if pa.types.is_unsigned_integer(dtype):
        return {8: pa.int16(), 16: pa.int32(), 32: pa.int64(), 64: pa.decimal128(20, 0)}[dtype.bit_width]
    if pa.types.is_decimal(dtype) and dtype.precision <= 38:
        return pa.decimal128(dtype.precision, dtype.scale)
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype):
        return pa.list_(_carried(dtype.value_type))
    if pa.types.is_map(dtype):
        return pa.map_(_carried(dtype.key_type), _carried(dtype.item_type))
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(field.name, _carried(field.type), field.nullable) for field in dtype])
    return dtype
