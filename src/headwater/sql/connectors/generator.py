"""'connector' = 'generator', or Flink's 'datagen': rows that follow from their number, the same every time."""

from __future__ import annotations

import datetime as dt
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.connectors.generator import IndexedSource
from headwater.data.functions.types import Type
from headwater.data.schema import Schema
from headwater.sql.connectors.contract import Made, Wanted
from headwater.sql.connectors.options import Options
from headwater.sql.errors import SqlError

_RATE: Final = 10_000
"""Rows a second where neither a rate nor an end is given, as in Flink."""
_LENGTH: Final = 100
_LARGEST: Final = {"tinyint": 2**7 - 1, "smallint": 2**15 - 1, "int": 2**31 - 1, "bigint": 2**63 - 1}
_KINDS: Final = ("random", "sequence")
_LETTERS: Final = np.frombuffer(b"0123456789abcdef", np.uint8)
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """How the values of a column are made of their places."""

    name: str
    type: Type
    is_sequence: bool
    first: float
    """The smallest value or the first one; of times, in microseconds."""
    last: float
    step: int = 1
    length: int = _LENGTH

    def values(self, at: Indices) -> pa.Array:
        """The values at some places."""
        kind, arrow = self.type.kind, self.type.arrow
        if self.is_sequence:
            numbers = int(self.first) + at * self.step
            return pa.array(numbers.astype(str)) if kind == "string" else pa.array(numbers).cast(arrow)
        noise = _noise(at, zlib.crc32(self.name.encode()))
        if kind == "string":
            return pa.array(_texts(noise, self.length))
        if kind == "boolean":
            return pa.array((noise & np.uint64(1)).astype(bool))
        if self.type.is_approximate:
            share = noise.astype(np.float64) / 2.0**64
            return pa.array(self.first + share * (self.last - self.first)).cast(arrow)
        span = int(self.last) - int(self.first) + 1
        return pa.array((noise % np.uint64(span)).astype(np.int64) + int(self.first)).cast(arrow)


class GeneratedColumns(IndexedSource):
    """Rows of such columns."""

    def __init__(self, columns: tuple[Column, ...], count: int | None, rate: float | None, splits: int) -> None:
        super().__init__(count, rate, splits)
        self._columns = columns

    def batches(self, indices: range, schema: Schema) -> Iterator[pa.RecordBatch]:
        at = np.arange(indices.start, indices.stop, indices.step, dtype=np.int64)
        yield pa.RecordBatch.from_arrays([column.values(at) for column in self._columns], schema=schema.arrow)


def generator(wanted: Wanted) -> Made:
    """Random values, or numbers in sequence; times go on by a second, or as the rate says."""
    wanted.refuse_metadata()
    wanted.refuse_partitions()
    options = wanted.options
    rate = options.whole("rows-per-second", least=1)
    count = options.whole("number-of-rows", least=0)
    columns = tuple(_column(field.name, field.type, options, rate) for field in wanted.fields)
    ends = [int(c.last - c.first) // c.step + 1 for c in columns if c.is_sequence and c.last != float("inf")]
    counts = [*ends, *([] if count is None else [count])]
    end = min(counts) if counts else None
    if end is None and rate is None:
        rate = _RATE
    return Made(source=GeneratedColumns(columns, end, rate, options.whole("splits", least=1) or 1))


def _column(name: str, dtype: Type, options: Options, rate: int | None) -> Column:
    prefix = f"fields.{name}."
    if dtype.is_timestamp:
        kind = options.choice(f"{prefix}kind", ("sequence",), "sequence")
        step = 1_000_000 if rate is None else max(1, 1_000_000 // rate)
        return Column(name, dtype, kind == "sequence", _time(options, f"{prefix}start"), float("inf"), step)
    if not (dtype.is_integer or dtype.is_approximate or dtype.kind in ("string", "boolean")):
        raise SqlError.wrong_type(
            options.place, f"column {name!r} of a generator", str(dtype), "a number, a string, a boolean or a timestamp"
        )
    if options.choice(f"{prefix}kind", _KINDS, "random") == "sequence":
        first = options.whole(f"{prefix}start")
        last = options.whole(f"{prefix}end", least=first)
        return Column(name, dtype, True, first or 0, float("inf") if last is None else last)  # noqa: FBT003
    if dtype.kind == "string":
        return Column(name, dtype, False, 0, 0, length=_bounded(options, f"{prefix}length"))  # noqa: FBT003
    if dtype.kind == "boolean":
        return Column(name, dtype, False, 0, 1)  # noqa: FBT003
    largest = _LARGEST.get(dtype.kind, 2**31 - 1)
    smallest = options.whole(f"{prefix}min")
    most = options.whole(f"{prefix}max", least=smallest)
    first = 0 if smallest is None else smallest
    last = max(first, largest) if most is None else most
    if not (-largest - 1 <= first and last <= largest) and dtype.is_integer:
        raise options.bad(f"{prefix}max", f"is more than a {dtype} holds", "choose another one")
    return Column(name, dtype, False, first, last)  # noqa: FBT003


def _bounded(options: Options, key: str) -> int:
    length = options.whole(key, least=1) or _LENGTH
    if length > 1_000_000:
        raise options.bad(key, "is more than a million characters", "choose a shorter one")
    return length


def _time(options: Options, key: str) -> float:
    text = options.text(key)
    if text is None:
        return 0
    try:
        return (dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(microseconds=1)
    except ValueError:
        raise options.bad(key, "is no time", "write it as '2024-01-01 00:00:00'") from None


def _noise(at: Indices, seed: int) -> npt.NDArray[np.uint64]:
    """A number for each place that looks random, by the mixing steps of splitmix64."""
    mixed = (at.astype(np.uint64) + np.uint64(seed + 1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _texts(noise: npt.NDArray[np.uint64], length: int) -> list[str]:
    """Texts of hexadecimal digits, sixteen of each number that noise gives."""
    pieces = []
    for part in range(0, length, 16):
        digits = (noise[:, None] >> np.arange(0, 64, 4, dtype=np.uint64)) & np.uint64(15)
        pieces.append(_LETTERS[digits.astype(np.intp)][:, : length - part])
        noise = _noise(noise.astype(np.int64), part)
    joined = np.concatenate(pieces, axis=1)
    return [row.tobytes().decode() for row in joined]
