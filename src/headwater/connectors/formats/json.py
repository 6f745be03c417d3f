"""JSON: each value one object, its members by name; members that no column asks for are passed over."""

from __future__ import annotations

import base64
import re
from collections.abc import Collection, Sequence
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from headwater.connectors.formats.contract import Format, Undecodable, refuse_types
from headwater.connectors.formats.decimals import is_far, may_be_far
from headwater.connectors.formats.json_exact import ExactJson, has_decimal
from headwater.connectors.formats.json_text import json_rows

_ROW = re.compile(r"\.? in row \d+$")
_NOT_FINITE = (b'"NaN"', b'Infinity"')
"""What stands for numbers that JSON has no form for."""
_LAST_OF_ASCII = 127


class JsonFormat(Format):
    """Reads whole batches with Arrow's own parser, as far as it knows the types of the columns.

    Times are ISO 8601 text, in UTC unless they say otherwise; dates are text, binary is text in base64, decimals are
    text or numbers; NaN and infinity are text too. Which way a value is read depends on the schema and on itself alone.
    """

    name = "json"

    def check(self, schema: pa.Schema, step: str) -> None:
        refuse_types(schema, lambda dtype: not pa.types.is_duration(dtype), step, "JSON")

    def decode(self, values: Sequence[bytes], schema: pa.Schema) -> pa.Table:
        objects = [value.strip() for value in values]
        if not all(one[:1] == b"{" and one[-1:] == b"}" for one in objects):
            raise Undecodable("it is not a JSON object")
        if not all(map(_is_read, schema.types)):
            return ExactJson(schema).decode(objects)
        odd = np.zeros(len(objects), bool)
        if any(map(_has_fractions, schema.types)):
            odd = np.array([any(text in one for text in _NOT_FINITE) for one in objects], bool)
        if any(map(has_decimal, schema.types)) and may_be_far(b"\n".join(objects)):
            odd |= np.array([is_far(one) for one in objects], bool)
        if not odd.any():
            return _by_arrow(objects, schema)
        read = [ExactJson(schema).decode(list(compress(objects, odd)))]
        if not odd.all():
            read.append(_by_arrow(list(compress(objects, ~odd)), schema))
        return pa.concat_tables(read).take(np.argsort(np.argsort(~odd, kind="stable")))

    def decode_lines(self, lines: pa.Buffer, schema: pa.Schema) -> pa.Table | None:
        """One row of each line, read at once; None if that cannot be, or the lines are not known to be an object each.

        What it gives, `decode` would give of the lines, which also finds out what is wrong.
        """
        letters = np.frombuffer(lines, np.uint8)
        ends = np.flatnonzero(letters == ord("\n"))
        is_plain = (
            letters[:1].tobytes() == b"{"
            and letters[-1:].tobytes() == b"}"
            and bool((letters[ends - 1] == ord("}")).all())
            and bool((letters[ends + 1] == ord("{")).all())
            and all(map(_is_read, schema.types))
            and not (any(map(_has_fractions, schema.types)) and _may_be_odd(lines.to_pybytes(), schema))
        )
        try:
            return _of_rows(_parsed(lines, _as_written(schema)), len(ends) + 1, schema) if is_plain else None
        except Undecodable:
            return None

    def value_columns(self, schema: pa.Schema, apart: Collection[str], step: str) -> list[str]:
        return list(schema.names)

    def encode(self, table: pa.Table) -> Sequence[bytes]:
        return [row.encode() for row in json_rows(table)]


def _by_arrow(objects: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    # With braces at its ends, each value gives at least a row, and none goes on in the next: '}' before '{' is an
    # error inside an object, and so is a line end inside a string. Also, Arrow 25 crashes on nothing but nulls.
    text = b"\n".join(objects)
    if text.count(b"\n") != len(objects) - 1:  # the parser cuts at line ends, which are mere space in an object
        # A tab is space too, and in a string an error as a line end is, which a blank is not.
        text = b"\n".join([one.replace(b"\n", b"\t") for one in objects])
    try:
        table = _parsed(text, _as_written(schema))
    except Undecodable:
        if len(objects) == 1:
            ExactJson(schema).decode(objects)  # says better what is wrong, if it thinks so too
        raise
    return _of_rows(table, len(objects), schema)


def _of_rows(table: pa.Table, count: int, schema: pa.Schema) -> pa.Table:
    """What was parsed of so many objects, as rows of a schema."""
    if len(table) != count:
        raise Undecodable("it is more than one JSON object")
    return pa.Table.from_arrays([_read(table.column(f.name), f) for f in schema], schema=schema)


def _parsed(text: bytes | pa.Buffer, schema: pa.Schema) -> pa.Table:
    try:
        if np.frombuffer(text, np.uint8).max(initial=0) > _LAST_OF_ASCII:
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


def _may_be_odd(text: bytes, schema: pa.Schema) -> bool:
    """Whether some of many rows may have numbers that Arrow does not read as they are meant: a quick look."""
    return any(one in text for one in _NOT_FINITE) or (any(map(has_decimal, schema.types)) and may_be_far(text))


def _has_fractions(dtype: pa.DataType) -> bool:
    """Whether a value of this type may be a number that is not whole, and so one that is not finite."""
    if dtype.num_fields:
        return any(_has_fractions(dtype.field(at).type) for at in range(dtype.num_fields))
    return bool(pa.types.is_floating(dtype) or pa.types.is_decimal(dtype))


def _is_read(dtype: pa.DataType) -> bool:
    """Whether Arrow's parser gives what this type needs."""
    return dtype == pa.binary() or _is_read_inside(dtype)


def _is_read_inside(dtype: pa.DataType) -> bool:
    if pa.types.is_list(dtype):
        return _is_read_inside(dtype.value_type)
    if pa.types.is_struct(dtype):
        return all(_is_read_inside(field.type) for field in dtype)
    return not (pa.types.is_map(dtype) or pa.types.is_duration(dtype) or pa.types.is_binary(dtype))


def _as_written(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_written(field.type)) for field in schema])


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
