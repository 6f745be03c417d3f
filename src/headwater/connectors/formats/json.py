"""JSON: each value one object, its members by name; members that no column asks for are passed over."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from headwater.connectors.formats.contract import Format, Undecodable, refuse_types

_ROW = re.compile(r"\.? in row \d+$")


class JsonFormat(Format):
    """Reads whole batches with Arrow's own parser.

    Times are ISO 8601 text, in UTC unless they say otherwise; dates are text, binary is text in base64, decimals are
    text or numbers.
    """

    name = "json"

    def check(self, schema: pa.Schema, step: str) -> None:
        refuse_types(schema, _is_read, step, "JSON")

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        # With these at its ends, each value gives at least a row, and none goes on in the next: '}' before '{' is an
        # error inside an object, and so is a line end inside a string. Also, Arrow 25 crashes on nothing but nulls.
        objects = [value.strip() for value in values]
        if not all(one[:1] == b"{" and one[-1:] == b"}" for one in objects):
            raise Undecodable("it is not a JSON object")
        text = b"\n".join(objects)
        if text.count(b"\n") != len(values) - 1:  # the parser cuts at line ends, which are mere space in an object
            text = b"\n".join([one.replace(b"\n", b" ") for one in objects])
        table = _parsed(text, pa.schema([field.with_type(_written(field.type)) for field in schema]))
        if len(table) != len(values):
            raise Undecodable("it is more than one JSON object")
        return pa.Table.from_arrays([_read(table.column(f.name), f) for f in schema], schema=schema)


def _parsed(text: bytes, schema: pa.Schema) -> pa.Table:
    try:
        str(text, "utf-8")  # the parser does not look
        return pa_json.read_json(
            pa.BufferReader(text),
            read_options=pa_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=pa_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
        )
    except UnicodeDecodeError:
        raise Undecodable("it is not UTF-8 text") from None
    except pa.ArrowInvalid as error:
        raise Undecodable(_ROW.sub("", str(error).removeprefix("JSON parse error: "))) from None


def _is_read(dtype: pa.DataType) -> bool:
    return dtype == pa.binary() or _is_read_inside(dtype)


def _is_read_inside(dtype: pa.DataType) -> bool:
    if pa.types.is_list(dtype):
        return _is_read_inside(dtype.value_type)
    if pa.types.is_struct(dtype):
        return all(_is_read_inside(field.type) for field in dtype)
    return not (pa.types.is_map(dtype) or pa.types.is_duration(dtype) or pa.types.is_binary(dtype))


def _written(dtype: pa.DataType) -> pa.DataType:
    """The type that the parser is to find: it takes dates for numbers, and bytes for text."""
    if pa.types.is_list(dtype):
        return pa.list_(dtype.value_field.with_type(_written(dtype.value_type)))
    if pa.types.is_struct(dtype):
        return pa.struct([field.with_type(_written(field.type)) for field in dtype])
    return pa.string() if pa.types.is_date(dtype) or pa.types.is_binary(dtype) else dtype


def _read(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        if pa.types.is_binary(field.type):
            found = [None if v is None else base64.b64decode(v, validate=True) for v in column.to_pylist()]
            return pa.chunked_array([pa.array(found, pa.binary())])
        return pc.cast(column, field.type)
    except ValueError as error:  # Arrow's errors of conversion, and base64's
        raise Undecodable(f"member {field.name!r}: {error}") from None
