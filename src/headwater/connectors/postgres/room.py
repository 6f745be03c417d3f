"""Which values a table's columns take, of types that they do not hold every value of.

Looked at when rows are staged: after the commit nothing could be done about a row that the server refuses. What only the
server knows stays to it: constraints, triggers, unique rows, and text that stands for addresses, XML or ranges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headwater.connectors.postgres.target import Column
from headwater.data.row_kinds import adds, read_kinds
from headwater.errors import RowError

_UUID = r"^(?:[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}|\{[0-9a-fA-F]{4}(?:-?[0-9a-fA-F]{4}){7}\})$"
_NUMERIC_DIGITS = (-16_000, 131_000)
"""How far digits may be from the point in PostgreSQL's numbers, which those in jsonb are."""


@dataclass(frozen=True)
class Room:
    """The columns that rows are written to, and those of them that are the key of an upsert."""

    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()

    def check(self, rows: pa.Table, step: str) -> None:
        """Refuse a row that the table cannot take."""
        added = rows.filter(pa.array(adds(read_kinds(rows, step)))) if self.key else rows
        for column in self.columns:
            values, name = rows.column(column.name), column.name
            if name in self.key and values.null_count:
                why = "a key to upsert by must not be null"
                raise RowError.value_does_not_fit(step, name, None, rows.schema.field(name).type, why)
            if column.is_not_null and added.column(name).null_count:
                raise RowError.value_does_not_fit(step, name, None, column.shown, "the column is not null")
            for chunk in values.chunks:
                if (found := _misfit(chunk, column)) is not None:
                    raise RowError.value_does_not_fit(step, name, found[0], column.shown, found[1])


def _misfit(values: pa.Array, column: Column) -> tuple[object, str] | None:
    """A value that a column does not take, and why."""
    is_written = column.is_json and bool(pa.types.is_nested(values.type))
    for text in _texts(values):
        for wrong, why in _of_json(text, column) if is_written else _of_text(text, column):
            if (at := pc.index(wrong, True).as_py()) >= 0:
                return text[at].as_py(), why
    return None


def _texts(values: pa.Array) -> Iterator[pa.Array]:
    """The columns of text that one is made of."""
    dtype = values.type
    if pa.types.is_string(dtype):
        yield values
    elif pa.types.is_list(dtype):
        yield from _texts(values.flatten())
    elif pa.types.is_struct(dtype):
        for inner in values.flatten():
            yield from _texts(inner)
    elif pa.types.is_map(dtype):
        first, last = values.offsets[0].as_py(), values.offsets[-1].as_py()
        for inner in (values.keys, values.items):
            yield from _texts(inner.slice(first, last - first))


def _of_json(text: pa.Array, column: Column) -> Iterator[tuple[pa.Array, str]]:
    """Which texts inside a nested value cannot be in a column of JSON, each with why: json keeps escapes as they are."""
    if column.base == "jsonb":
        yield pc.match_substring(text, "\0"), "jsonb has no form for the character 0"


def _of_text(text: pa.Array, column: Column) -> Iterator[tuple[pa.Array, str]]:
    """Which texts a column, or an array's elements, cannot hold, each with why."""
    base = column.element or column.base
    yield pc.match_substring(text, "\0"), "PostgreSQL has no text with the character 0"
    if base in ("varchar", "bpchar") and column.modifier >= 0:
        most = column.modifier - 4
        yield pc.greater(pc.utf8_length(pc.utf8_rtrim(text, " ")), most), f"it has more than {most} characters"
    if column.labels is not None:
        known = pc.or_(pc.is_in(text, pa.array(column.labels, pa.string())), pc.is_null(text))
        yield pc.invert(known), f"it is none of {', '.join(column.labels)}"
    if base == "uuid":
        yield pc.invert(pc.match_substring_regex(text, _UUID)), "it is no UUID"
    if base in ("json", "jsonb"):
        checked = [value is not None and not _is_json(value, exact=base == "jsonb") for value in text.to_pylist()]
        yield pa.array(checked, pa.bool_()), "it is no JSON that PostgreSQL reads"


def _is_json(text: str, *, exact: bool) -> bool:
    """Whether PostgreSQL reads this text as JSON; `exact` where it takes it apart, as jsonb does."""
    try:
        found = json.loads(text, parse_constant=_no_number, parse_float=_number if exact else None)
        if exact:
            return "\0" not in "".join(_strings_in(found)).encode().decode()
    except (ValueError, RecursionError):
        return False
    return True


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no number in JSON")


def _number(text: str) -> Decimal:
    number = Decimal(text)
    if number and not _NUMERIC_DIGITS[0] < number.adjusted() < _NUMERIC_DIGITS[1]:
        raise ValueError(f"{text} is too large or too small")
    return number


def _strings_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for inner in value.values():
            yield from _strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings_in(inner)
