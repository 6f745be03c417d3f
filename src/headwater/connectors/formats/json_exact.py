"""JSON value by value, for types and texts that Arrow's parser does not know: maps, bytes inside lists, `"NaN"`."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headwater.connectors.formats.contract import Undecodable
from headwater.data.rows import encode
from headwater.errors import RowError

Convert = Callable[[Any], Any]
_NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


class ExactJson:
    """Rows of one schema. Members that are missing are null, members that the schema lacks are passed over."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._converts = [_converter(field.type) for field in schema]
        self._exact_numbers = any(map(has_decimal, schema.types))
        """A number with a point is read as a decimal where a field wants every digit of it."""

    def decode(self, values: Sequence[bytes]) -> pa.Table:
        """A row of each value, or `Undecodable`."""
        try:
            rows = [json.loads(value, parse_float=Decimal if self._exact_numbers else None) for value in values]
            return self._table(rows)
        except RowError as error:
            raise Undecodable(str(error).removeprefix("step 'json', ")) from None
        except UnicodeDecodeError:
            raise Undecodable("it is not UTF-8 text") from None
        except (ValueError, TypeError, RecursionError) as error:
            raise Undecodable(str(error)) from None

    def _table(self, rows: list[dict[str, Any]]) -> pa.Table:
        columns = []
        for field, convert in zip(self._schema, self._converts, strict=True):
            values = [row.get(field.name) for row in rows]
            times = _times(values, field)
            if times is not None:
                columns.append(times)
                continue
            if convert is not None:
                values = [None if value is None else _converted(convert, value, field) for value in values]
            columns.append(encode(values, field, "json"))
        return pa.Table.from_arrays(columns, schema=self._schema)


def _times(values: list[Any], field: pa.Field) -> pa.Array | None:
    """A column of times that Arrow can read, at once; None for what must be looked at one by one."""
    if not pa.types.is_timestamp(field.type) or not {type(value) for value in values} <= {str, type(None)}:
        return None
    try:
        found = pa.array(values, pa.string()).cast(field.type)
    except pa.ArrowInvalid:
        return None
    return found if field.nullable or not found.null_count else None


def _converted(convert: Convert, value: Any, field: pa.Field) -> Any:
    try:
        return convert(value)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise RowError.value_does_not_fit("json", field.name, value, field.type, str(error)) from None


def has_decimal(dtype: pa.DataType) -> bool:
    """Whether a type is a decimal, or has one inside."""
    if pa.types.is_decimal(dtype):
        return True
    return pa.types.is_nested(dtype) and any(has_decimal(dtype.field(i).type) for i in range(dtype.num_fields))


def _converter(dtype: pa.DataType) -> Convert | None:
    """What makes a value of JSON one of this type; None where it is one."""
    if pa.types.is_floating(dtype):
        return _number
    if pa.types.is_decimal(dtype):
        return _decimal
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
        return _boolean
    return _nullable(dtype)


def _boolean(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("expected the key true or false")
    return text == "true"


def _number(value: Any) -> Any:
    if isinstance(value, str):
        return _NOT_FINITE.get(value, value)
    return float(value) if isinstance(value, Decimal) else value


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool):
        raise TypeError("expected a number, got bool")
    return Decimal(_text(value)) if isinstance(value, str) else Decimal(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {type(value).__name__}")
    return value
