"""CSV: each value one line, its fields in the order of the columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from headwater.connectors.formats.contract import Format, Undecodable, refuse_types
from headwater.connectors.formats.decimals import decimals
from headwater.data.schema import type_ddl
from headwater.errors import GraphError

_FIELD = rb"""(?:[^",\r\n]*+|"(?:[^"]|"")*+")"""
_LINE = re.compile(_FIELD + rb"(?:," + _FIELD + rb")*+")


class CsvFormat(Format):
    """Reads whole batches with Arrow's own parser. A field that is empty and not in quotes is null."""

    name = "csv"

    def check(self, schema: pa.Schema, step: str) -> None:
        refuse_types(schema, lambda dtype: not (pa.types.is_nested(dtype) or pa.types.is_duration(dtype)), step, "CSV")

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        lines = [value.rstrip(b"\r\n") for value in values]
        if len(schema) > 1 and b"" in lines:
            raise Undecodable("it is empty")
        if len(lines) > 1 and not all(map(_is_plain, lines)):
            raise Undecodable("among others there is one that may be more or less than a line")
        # A last line of our own: a quote that is not closed swallows it, and then a row is missing.
        lines.append(b"," * (len(schema) - 1))
        table = _parsed(b"\n".join(lines) + b"\n", _as_text(schema))
        if len(table) != len(lines):
            raise Undecodable("it is not one line of CSV")
        return _with_decimals(table.slice(0, len(values)), schema)

    def value_columns(self, schema: pa.Schema, apart: Collection[str], step: str) -> list[str]:
        for field in schema:
            if pa.types.is_nested(field.type):
                raise GraphError.bad_argument(
                    step, f"cannot write column {field.name!r} as CSV", type_ddl(field.type), "use format='json'"
                )
        return list(schema.names)

    def encode(self, table: pa.Table) -> Sequence[bytes]:
        columns = [_written(column) for column in table.columns]
        lines = pc.binary_join_element_wise(*columns, b",", null_handling="replace", null_replacement=b"")
        return lines.to_pylist()  # type: ignore[no-any-return]


def _as_text(schema: pa.Schema) -> pa.Schema:
    """The columns, with decimals as they are written."""
    return pa.schema([f.with_type(pa.string()) if pa.types.is_decimal(f.type) else f for f in schema])


def _with_decimals(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table whose decimals are text, with these as decimals."""
    for at, field in enumerate(schema):
        if pa.types.is_decimal(field.type):
            try:
                table = table.set_column(at, field, decimals(table.column(at), field))
            except ValueError as error:
                raise Undecodable(f"field {field.name!r}: {error}") from None
    return table.cast(schema)


def _written(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text as bytes, in quotes where it may have some in it."""
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return pc.cast(pc.cast(column, pa.string()), pa.binary())
    escaped = pc.replace_substring(pc.cast(column, pa.binary()), b'"', b'""')
    return pc.binary_join_element_wise(b'"', escaped, b'"', b"")


def _is_plain(line: bytes) -> bool:
    """Whether a value is surely one line: fields without quotes and line ends, or in quotes that are closed."""
    if b'"' in line:
        return _LINE.fullmatch(line) is not None
    return b"\n" not in line and b"\r" not in line


def _parsed(text: bytes, schema: pa.Schema) -> pa.Table:
    types = {field.name: field.type for field in schema}
    try:
        return pa_csv.read_csv(
            pa.BufferReader(text),
            read_options=pa_csv.ReadOptions(column_names=schema.names, use_threads=False, block_size=len(text) + 1),
            parse_options=pa_csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
            convert_options=pa_csv.ConvertOptions(
                column_types=types, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
            ),
        )
    except pa.ArrowInvalid as error:
        raise Undecodable(str(error).removeprefix("CSV parse error: ")) from None
