"""Typed values as bytes and back, exactly and without pickling: the form in which the disk backend keeps them.

There are two. `value_codec` is the compact one. `key_codec` is for keys: comparing the bytes of two keys gives the order
of the keys, so that keys that follow each other are read together. Both live no longer than a worker's folder, so neither
has a version.
"""

from __future__ import annotations

import datetime as dt
import decimal
import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import pyarrow as pa

from headwater.data.rows import UTC, row_class

Write = Callable[[Any, bytearray], None]
"""Appends a value to a buffer."""
Read = Callable[[bytes, int], tuple[Any, int]]
"""The value that begins at a place, and the place behind it."""


class Codec(NamedTuple):
    """A whole value as bytes and back."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


class _Part(NamedTuple):
    """A value beside others."""

    write: Write
    read: Read


_COUNT = struct.Struct("<I")
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY_ZERO = dt.date(1970, 1, 1).toordinal()
_WIDE = decimal.Context(prec=76)
_DECIMAL_BYTES = 16
_FORMATS = {pa.int8(): "b", pa.int16(): "h", pa.int32(): "i", pa.int64(): "q", pa.float32(): "f", pa.float64(): "d"}


@cache
def value_codec(dtype: pa.DataType) -> Codec:
    """The compact codec of a type's values, None not among them."""
    if dtype in _FORMATS:
        form = struct.Struct("<" + _FORMATS[dtype])
        return Codec(form.pack, lambda data: form.unpack(data)[0])
    if pa.types.is_string(dtype):
        return Codec(str.encode, bytes.decode)
    if pa.types.is_binary(dtype):
        return Codec(bytes, bytes)
    part = _part(dtype)
    return Codec(partial(_whole, write=part.write), lambda data: part.read(data, 0)[0])


@cache
def key_codec(dtype: pa.DataType) -> Codec:
    """The codec of a key type, None among its values: bytes compare as the keys do in a dump, nulls last."""
    if dtype == pa.int64():
        form = struct.Struct(">BQ")
        bias = 1 << 63
        return Codec(
            lambda key: b"\1" if key is None else form.pack(0, key + bias),
            lambda data: None if data == b"\1" else form.unpack(data)[1] - bias,
        )
    if pa.types.is_string(dtype):
        return Codec(
            lambda key: b"\1" if key is None else b"\0" + key.encode(),
            lambda data: None if data == b"\1" else data[1:].decode(),
        )
    part = _nullable(_ordered_part(dtype))
    return Codec(partial(_whole, write=part.write), lambda data: part.read(data, 0)[0])


def _whole(value: Any, write: Write) -> bytes:
    out = bytearray()
    write(value, out)
    return bytes(out)


def _part(dtype: pa.DataType) -> _Part:
    if dtype in _FORMATS:
        return _fixed("<" + _FORMATS[dtype])
    if pa.types.is_string(dtype):
        return _sized(str.encode, bytes.decode)
    if pa.types.is_binary(dtype):
        return _sized(bytes, bytes)
    if pa.types.is_list(dtype):
        return _listed(_nullable(_part(dtype.value_type)))
    if pa.types.is_map(dtype):
        return _mapped(_part(dtype.key_type), _nullable(_part(dtype.item_type)))
    if pa.types.is_struct(dtype):
        return _fields(dtype, [_nullable(_part(field.type)) for field in dtype])
    if pa.types.is_boolean(dtype):
        return _fixed("<?")
    if pa.types.is_null(dtype):
        return _fixed("<")
    return _number(dtype, _little)


def _ordered_part(dtype: pa.DataType) -> _Part:
    if pa.types.is_string(dtype):
        return _escaped(str.encode, bytes.decode)
    if pa.types.is_binary(dtype):
        return _escaped(bytes, bytes)
    if pa.types.is_struct(dtype):
        return _fields(dtype, [_nullable(_ordered_part(field.type)) for field in dtype])
    return _number(dtype, _biased)


def _number(dtype: pa.DataType, integers: Callable[[int], _Part]) -> _Part:
    """A type whose values stand for integers."""
    if pa.types.is_integer(dtype):
        return integers(dtype.bit_width // 8)
    if pa.types.is_boolean(dtype):
        return _as(int, bool, integers(1))
    if pa.types.is_date32(dtype):
        return _as(lambda day: day.toordinal() - _DAY_ZERO, lambda n: dt.date.fromordinal(n + _DAY_ZERO), integers(4))
    if pa.types.is_timestamp(dtype):
        zero = dt.datetime(1970, 1, 1, tzinfo=UTC if dtype.tz else None)
        return _as(
            lambda moment: (moment - zero) // _MICROSECOND, lambda n: zero + dt.timedelta(microseconds=n), integers(8)
        )
    if pa.types.is_duration(dtype):
        return _as(lambda length: length // _MICROSECOND, lambda n: dt.timedelta(microseconds=n), integers(8))
    if pa.types.is_decimal(dtype):
        scale = dtype.scale
        return _as(
            lambda number: int(_WIDE.scaleb(number, scale)),
            lambda n: _WIDE.scaleb(decimal.Decimal(n), -scale),
            integers(_DECIMAL_BYTES),
        )
    raise TypeError(f"type {dtype} is not supported")


def _as(to: Callable[[Any], Any], back: Callable[[Any], Any], part: _Part) -> _Part:
    """Values that another part keeps in another form."""

    def write(value: Any, out: bytearray) -> None:
        part.write(to(value), out)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        kept, after = part.read(data, at)
        return back(kept), after

    return _Part(write, read)


def _fixed(form: str) -> _Part:
    packed = struct.Struct(form)
    size = packed.size

    def write(value: Any, out: bytearray) -> None:
        out += packed.pack(value)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return packed.unpack_from(data, at)[0], at + size

    return _Part(write, read)


def _little(size: int) -> _Part:
    """Integers, the last byte first."""

    def write(value: Any, out: bytearray) -> None:
        out += value.to_bytes(size, "little", signed=True)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return int.from_bytes(data[at : at + size], "little", signed=True), at + size

    return _Part(write, read)


def _biased(size: int) -> _Part:
    """Integers whose bytes compare as they do: the smallest one is zero, the first byte comes first."""
    bias = 1 << (8 * size - 1)

    def write(value: Any, out: bytearray) -> None:
        out += (value + bias).to_bytes(size, "big")

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return int.from_bytes(data[at : at + size], "big") - bias, at + size

    return _Part(write, read)


def _sized(to: Callable[[Any], bytes], back: Callable[[bytes], Any]) -> _Part:
    """Bytes behind their number."""

    def write(value: Any, out: bytearray) -> None:
        data = to(value)
        out += _COUNT.pack(len(data))
        out += data

    def read(data: bytes, at: int) -> tuple[Any, int]:
        start = at + _COUNT.size
        end = start + _COUNT.unpack_from(data, at)[0]
        return back(data[start:end]), end

    return _Part(write, read)


def _escaped(to: Callable[[Any], bytes], back: Callable[[bytes], Any]) -> _Part:
    """Bytes up to two zeros; a zero among them has a 255 behind it, so that the order stays and the end is clear."""

    def write(value: Any, out: bytearray) -> None:
        out += to(value).replace(b"\0", b"\0\xff")
        out += b"\0\0"

    def read(data: bytes, at: int) -> tuple[Any, int]:
        end = data.index(b"\0\0", at)
        return back(data[at:end].replace(b"\0\xff", b"\0")), end + 2

    return _Part(write, read)


def _nullable(part: _Part) -> _Part:
    def write(value: Any, out: bytearray) -> None:
        if value is None:
            out.append(1)
        else:
            out.append(0)
            part.write(value, out)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        return (None, at + 1) if data[at] else part.read(data, at + 1)

    return _Part(write, read)


def _listed(item: _Part) -> _Part:
    def write(value: Any, out: bytearray) -> None:
        out += _COUNT.pack(len(value))
        for one in value:
            item.write(one, out)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        (count,) = _COUNT.unpack_from(data, at)
        at += _COUNT.size
        found = []
        for _ in range(count):
            one, at = item.read(data, at)
            found.append(one)
        return found, at

    return _Part(write, read)


def _mapped(key: _Part, item: _Part) -> _Part:
    def write(pair: Any, out: bytearray) -> None:
        key.write(pair[0], out)
        item.write(pair[1], out)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        entry, at = key.read(data, at)
        value, at = item.read(data, at)
        return (entry, value), at

    pairs = _listed(_Part(write, read))
    return _as(lambda value: value.items(), dict, pairs)


def _fields(dtype: pa.DataType, parts: list[_Part]) -> _Part:
    cls = row_class(tuple(field.name for field in dtype))

    def write(value: Any, out: bytearray) -> None:
        for part, one in zip(parts, value, strict=True):
            part.write(one, out)

    def read(data: bytes, at: int) -> tuple[Any, int]:
        found = []
        for part in parts:
            one, at = part.read(data, at)
            found.append(one)
        return tuple.__new__(cls, found), at

    return _Part(write, read)
