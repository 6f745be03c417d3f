"""Rows and values as JSON text."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections.abc import Iterator

import pyarrow as pa

from headwater.data.rows import decode


def json_rows(table: pa.Table) -> Iterator[str]:
    """Each row as an object of its columns, as `json_line` writes it."""
    columns = [
        column.to_pylist(maps_as_pydicts="strict") if pa.types.is_nested(column.type) else decode(column)
        for column in table.columns
    ]
    names = table.column_names
    for values in zip(*columns, strict=True):
        yield json_line(dict(zip(names, values, strict=True)))


def json_line(value: object) -> str:
    """One row or value as JSON on one line.

    JSON has no form for some values: bytes are written in base64, times in ISO 8601, decimals as strings that keep every
    digit, and as Spark does it NaN and infinities as strings.

    >>> json_line({"at": dt.date(2026, 1, 1), "ratio": float("nan"), "by": {1: b"x"}})
    '{"at": "2026-01-01", "ratio": "NaN", "by": {"1": "eA=="}}'
    """
    try:
        return _ENCODER.encode(value)
    except (ValueError, TypeError):
        return _ENCODER.encode(_strict(value))


def _strict(value: object) -> object:
    """The value without what `json.dumps` refuses: numbers that are not finite, keys that are no text."""
    if isinstance(value, dict):
        return {name if isinstance(name, str) else _unquoted(name): _strict(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_strict(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def plain_text(value: object) -> bytes | None:
    """A single value as bytes: text and bytes as they are, others as JSON has them but without quotes.

    >>> plain_text(7), plain_text(True), plain_text(dt.date(2026, 1, 1)), plain_text(None)
    (b'7', b'true', b'2026-01-01', None)
    """
    if value is None or isinstance(value, bytes):
        return value
    return (value if isinstance(value, str) else _unquoted(value)).encode()


def _unquoted(value: object) -> str:
    text = json_line(value)
    return text[1:-1] if text.startswith('"') else text


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, dt.date | dt.datetime) else str(value)


_ENCODER = json.JSONEncoder(default=_plain, ensure_ascii=False, allow_nan=False)
