"""JSON lines as columns: one object a line; what JSON has no form for is text, as the files sink writes it."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.connectors.formats.contract import Undecodable
from headwater.connectors.formats.json import JsonFormat
from headwater.errors import HeadwaterError, RowError
from headwater.rows import encode

Convert = Callable[[Any], Any]
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class JsonDecoder:
    """Rows of one schema out of lines. Fields that are missing are null, fields that the schema lacks are passed over."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._is_plain = is_plain(schema)
        self._converts = [_converter(field.type) for field in schema]
        self._exact_numbers = any(map(_has_decimal, schema.types))
        """A number with a point is read as a decimal where a field wants every digit of it."""

    def decode(self, lines: Sequence[bytes], first_line: int = 1) -> pa.RecordBatch:
        """The rows of lines, of which empty ones are none; `ValueError` names the first line that holds no such row."""
        filled = [line for line in lines if line.strip()]
        found = self._at_once(filled) if filled and self._is_plain else None
        if found is not None:
            return found
        try:
            return self._columns(self._loads(b"[" + b",".join(filled) + b"]"))
        except (ValueError, TypeError, RecursionError):
            for at, line in enumerate(lines, first_line):
                self._check_line(line, at)
            raise

    def _at_once(self, lines: list[bytes]) -> pa.RecordBatch | None:
        """All rows as those of messages are read, which is several times as fast; None for what must be looked at closely."""
        try:
            table = JsonFormat().decode(lines, self._schema)
        except Undecodable:
            return None
        if any(not field.nullable and table.column(field.name).null_count for field in self._schema):
            return None
        return table.combine_chunks().to_batches()[0]

    def _check_line(self, line: bytes, at: int) -> None:
        try:
            if line.strip():
                self._columns([self._loads(line)])
        except RowError as error:
            raise ValueError(str(error).replace("step 'json'", f"line {at}", 1)) from None
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"line {at}: {error}") from None

    def _loads(self, text: bytes) -> Any:
        return json.loads(text, parse_float=Decimal if self._exact_numbers else None)

    def _columns(self, rows: list[Any]) -> pa.RecordBatch:
        if not all(type(row) is dict for row in rows):
            raise ValueError("a line must hold one object")
        columns = []
        for field, convert in zip(self._schema, self._converts, strict=True):
            values = [row.get(field.name) for row in rows]
            if convert is not None:
                values = [None if value is None else _converted(convert, value, field) for value in values]
            columns.append(encode(values, field, "json"))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def is_plain(schema: pa.Schema) -> bool:
    """Whether the format of messages reads all of these types: it has neither maps nor bytes in lists and structs."""
    try:
        JsonFormat().check(schema, "json")
    except HeadwaterError:
        return False
    return True


def _converted(convert: Convert, value: Any, field: pa.Field) -> Any:
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise RowError.value_does_not_fit("json", field.name, value, field.type, str(error)) from None


def _has_decimal(dtype: pa.DataType) -> bool:
    if pa.types.is_decimal(dtype):
        return True
    return pa.types.is_nested(dtype) and any(_has_decimal(dtype.field(i).type) for i in range(dtype.num_fields))


def _converter(dtype: pa.DataType) -> Convert | None:
    """What makes a value of JSON one of this type; None where it is one."""
    if pa.types.is_floating(dtype):
        return _number
    if pa.types.is_decimal(dtype):
        return lambda value: Decimal(_text(value)) if isinstance(value, str) else Decimal(value)
    if pa.types.is_timestamp(dtype):
        return lambda value: dt.datetime.fromisoformat(_text(value))
    if pa.types.is_date(dtype):
        return lambda value: dt.date.fromisoformat(_text(value))
    if pa.types.is_binary(dtype):
        return lambda value: base64.b64decode(_text(value), validate=True)
    if pa.types.is_list(dtype):
        item = _nullable(dtype.value_type)
        return lambda value: [item(inner) for inner in value] if isinstance(value, list) else value
    if pa.types.is_map(dtype):
        key, entry = _key(dtype.key_type), _nullable(dtype.item_type)
        return lambda value: {key(k): entry(v) for k, v in value.items()} if isinstance(value, dict) else value
    if pa.types.is_struct(dtype):
        fields = [(field.name, _nullable(field.type)) for field in dtype]
        return lambda value: (
            tuple(inner(value.get(name)) for name, inner in fields) if isinstance(value, dict) else value
        )
    return None


def _nullable(dtype: pa.DataType) -> Convert:
    convert = _converter(dtype)
    return (lambda value: value) if convert is None else (lambda value: None if value is None else convert(value))


def _key(dtype: pa.DataType) -> Convert:
    """Keys of objects are text, whatever they stand for."""
    if pa.types.is_integer(dtype):
        return int
    if pa.types.is_boolean(dtype):
        return {"true": True, "false": False}.__getitem__
    return _nullable(dtype)


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return _NOT_FINITE.get(value, value)
    return float(value) if isinstance(value, Decimal) else value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value
