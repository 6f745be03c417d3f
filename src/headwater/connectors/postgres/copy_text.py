"""Arrow columns as the text that PostgreSQL's COPY reads: CSV, in which a null is an empty field without quotes."""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from headwater.connectors.formats.json_text import json_line
from headwater.connectors.postgres.target import Column

_OPTIONS = pa_csv.WriteOptions(include_header=False, quoting_style="all_valid")

ToText = Callable[[pa.Array], pa.Array]


def csv_lines(columns: list[pa.Array]) -> bytes:
    """Rows out of columns of text."""
    out = io.BytesIO()
    pa_csv.write_csv(pa.table(columns, names=[str(n) for n in range(len(columns))]), out, _OPTIONS)
    return out.getvalue()


def to_text(dtype: pa.DataType, column: Column) -> ToText:
    """How values of a type are written for a column that holds them."""
    if column.is_json and pa.types.is_nested(dtype):
        return _json
    if pa.types.is_list(dtype):
        element = _scalar(dtype.value_type, column.element or "")
        return lambda array: _arrays(array, element)
    return _scalar(dtype, column.base)


def _scalar(dtype: pa.DataType, base: str) -> ToText:
    if pa.types.is_binary(dtype):
        return _hexadecimal
    if pa.types.is_duration(dtype):
        return lambda array: pc.binary_join_element_wise(as_text(array.view(pa.int64())), "microseconds", " ")
    if pa.types.is_float32(dtype) and base == "float8":
        return lambda array: as_text(array.cast(pa.float64()))  # 0.1 as four bytes is not 0.1 as eight
    return as_text


def as_text(array: pa.Array) -> pa.Array:
    """Values whose text is the same for Arrow and PostgreSQL."""
    return pc.cast(array, pa.string())


def _hexadecimal(array: pa.Array) -> pa.Array:
    return pa.array([None if value is None else "\\x" + value.hex() for value in array.to_pylist()], pa.string())


def _json(array: pa.Array) -> pa.Array:
    values = array.to_pylist(maps_as_pydicts="strict")
    return pa.array([None if value is None else json_line(value) for value in values], pa.string())


def _arrays(array: pa.Array, element: ToText) -> pa.Array:
    texts = iter([_quoted(text) for text in element(array.flatten()).to_pylist()])
    lengths = pc.list_value_length(array).to_pylist()
    written = [None if n is None else "{" + ",".join(next(texts) for _ in range(n)) + "}" for n in lengths]
    return pa.array(written, pa.string())


def _quoted(text: str | None) -> str:
    return "NULL" if text is None else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
