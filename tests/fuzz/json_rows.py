"""What rows of JSON say, read with nothing but Python: beside this what the product has read is judged."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.fuzz.json_mutations import DEEP
from tests.fuzz.target import WrongRows

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("n", pa.int64()),
        ("i", pa.int32()),
        ("x", pa.float64()),
        ("d", pa.decimal128(20, 4)),
        ("b", pa.bool_()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"k": "a", "n": 9007199254740993, "i": -7, "x": 0.1, "d": "12.3400", "b": True, "at": "2026-01-02T03:04:05.678Z"},
    {
        "k": 'ü\u2028\\"',
        "n": -(2**63),
        "day": "2024-02-29",
        "raw": "AAH/",
        "tags": ["p", None, ""],
        "s": {"a": 1, "b": "x"},
    },
    {"x": "NaN", "d": 0.1, "at": None, "tags": [], "s": {"b": None}, "k": ""},
]
_NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


class _Number(str):
    """The text of a number."""


def _without_depth(text: str) -> str:
    """With nothing in it for what is nested deeper than Python reads: where a schema has no such member, it is passed over."""
    for opening, closing in (("[", "]"), ('{"x":', "}")):
        text = text.replace(f"{opening * DEEP}1{closing * DEEP}", f"{opening[0]}{closing}")
    return text


def said(text: str) -> list[dict[str, Any]]:
    """The objects of a text of JSON: one, or an array of them; numbers as their texts."""
    given = json.loads(_without_depth(text), parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    return given if isinstance(given, list) else [given]


def judge(found: list[dict[str, Any]], given: list[dict[str, Any]], where: str) -> None:
    """Rows that were read must be the ones that were given: no number rounded, no text changed, none lost."""
    if len(found) != len(given):
        raise WrongRows(f"{where} has {len(given)} rows, and {len(found)} were read")
    for row, one in zip(found, given, strict=True):
        for field in SCHEMA:
            value, wanted = row[field.name], one.get(field.name)
            if not _is(value, wanted, field.type):
                raise WrongRows(f"{field.name} of {where} is {wanted!r}, and {value!r} was read")


def _is(value: Any, given: Any, dtype: pa.DataType) -> bool:
    if value is None or given is None:
        return value is None and given is None
    if pa.types.is_list(dtype):
        return len(value) == len(given) and all(_is(*both, dtype.value_type) for both in zip(value, given, strict=True))
    if pa.types.is_struct(dtype):
        return all(_is(value[field.name], given.get(field.name), field.type) for field in dtype)
    if pa.types.is_string(dtype):
        return type(given) is str and value == given
    if pa.types.is_boolean(dtype):
        return value is given
    if pa.types.is_integer(dtype):
        return isinstance(given, _Number) and Decimal(given) == value
    if pa.types.is_floating(dtype):
        wanted = float(given) if isinstance(given, _Number) else _NOT_FINITE[given]
        return value == wanted or (math.isnan(value) and math.isnan(wanted))
    if pa.types.is_decimal(dtype):
        return Decimal(given) == value
    if pa.types.is_binary(dtype):
        return base64.b64decode(given, validate=True) == value
    if pa.types.is_date(dtype):
        return dt.date.fromisoformat(given) == value
    moment = dt.datetime.fromisoformat(given)
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) == value
