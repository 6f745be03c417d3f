"""Rows as Python sees them (named tuples) and as Arrow carries them (columns), and the checked way between the two."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.data.errors import NoField
from headwater.errors import RowError

Row = tuple[Any, ...]
"""A named tuple whose fields are the schema's; a field whose name is no Python identifier is reached by position."""

UTC = dt.UTC
_EPOCH_UTC = dt.datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001  timestamp_ntz has no zone by definition
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""The milliseconds since the epoch that a datetime can be of."""
_INT_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


@cache
def row_class(names: tuple[str, ...]) -> type[Row]:
    """The named-tuple class for these field names (one class per set of names in a process)."""
    row = _named_tuple(names)
    row.__getattr__ = _no_field  # type: ignore[attr-defined]
    return row


def _named_tuple(names: tuple[str, ...]) -> type[Row]:
    return namedtuple("Row", names, rename=True)


def _no_field(row: Any, name: str) -> Any:
    """Stands where a row is asked for what it has not."""
    if name.startswith("__"):  # as libraries ask any object
        raise AttributeError(name)
    raise NoField(name, row._fields)


def make_rows(cls: type[Row], columns: Sequence[Iterable[Any]]) -> Iterable[Row]:
    """Rows of `cls` out of columns of Python values; twice as fast as calling the class."""
    return map(partial(tuple.__new__, cls), zip(*columns, strict=True))


def decode(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The Python values of a column: structs as rows, maps as dicts, timestamps with a zone as aware datetimes in UTC."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
        if isinstance(array, pa.ChunkedArray):
            return [value for chunk in array.chunks for value in decode(chunk)]
    dtype = array.type
    if array.null_count and not pa.types.is_null(dtype):
        return _with_nulls(array)
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype):
        return array.to_numpy().tolist()  # type: ignore[no-any-return]
    if pa.types.is_timestamp(dtype):
        since = array.view(pa.int64()).to_numpy()
        try:
            return list(map((_EPOCH_UTC if dtype.tz else _EPOCH).__add__, since.view("m8[us]").tolist()))
        except OverflowError:
            raise RowError.beyond_datetimes(max(since.tolist(), key=abs)) from None
    if pa.types.is_struct(dtype):
        children = [decode(array.field(i)) for i in range(dtype.num_fields)]
        return list(make_rows(row_class(tuple(f.name for f in dtype)), children))
    if pa.types.is_list(dtype):
        offsets = array.offsets.to_numpy().tolist()
        values = decode(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
        first = offsets[0]
        return [values[a - first : b - first] for a, b in pairwise(offsets)]
    if pa.types.is_map(dtype):
        offsets = array.offsets.to_numpy().tolist()
        first, count = offsets[0], offsets[-1] - offsets[0]
        keys = decode(array.keys.slice(first, count))
        items = decode(array.items.slice(first, count))
        pairs = list(zip(keys, items, strict=True))
        return [dict(pairs[a - first : b - first]) for a, b in pairwise(offsets)]
    return array.to_pylist()  # type: ignore[no-any-return]


def _with_nulls(array: pa.Array) -> list[Any]:
    valid = array.is_valid()
    out: list[Any] = [None] * len(array)
    values = decode(array.filter(valid))
    for at, value in zip(np.flatnonzero(valid.to_numpy(zero_copy_only=False)).tolist(), values, strict=True):
        out[at] = value
    return out


def encode(values: Sequence[Any], field: pa.Field, step: str) -> pa.Array:
    """A column out of Python values; the first value that does not fit is named in the error with step and field.

    Arrow alone would truncate 1.5 to 1 and split a string into a list of letters, so the values' types are looked at first.
    """
    dtype = field.type
    allowed = _exact_types(dtype)
    if allowed is not None and allowed.issuperset(map(type, values)):
        try:
            array = pa.array(values, dtype)
        except (pa.ArrowException, OverflowError, ValueError, TypeError):
            array = None
        if array is not None and (field.nullable or not array.null_count):
            return array
    fits = converter(dtype)
    good = []
    for value in values:
        try:
            if value is None and not field.nullable:
                raise ValueError("the field is declared not null")
            good.append(None if value is None else fits(value))
        except (TypeError, ValueError, OverflowError, decimal.InvalidOperation) as error:
            raise RowError.value_does_not_fit(step, field.name, value, dtype, str(error)) from None
    try:
        return pa.array(good, dtype)
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        raise RowError.value_does_not_fit(step, field.name, good, dtype, str(error)) from None


def recode(values: Sequence[Any], dtype: pa.DataType) -> pa.Array:
    """The column that `decode` gave these values for. They are not looked at one by one, so it takes no others."""
    if pa.types.is_struct(dtype) and dtype.num_fields and values and None not in values:
        columns = zip(*values, strict=True)
        children = [recode(column, field.type) for column, field in zip(columns, dtype, strict=True)]
        return pa.StructArray.from_arrays(children, fields=list(dtype))
    item = dtype.value_type if pa.types.is_list(dtype) else dtype
    if pa.types.is_nested(item):
        return encode(values, pa.field("value", dtype), "recode")
    return pa.array(values, dtype)


def encode_rows(rows: Sequence[Any], schema: pa.Schema, step: str) -> pa.Table:
    """A table out of rows given as dicts or tuples in the schema's order; missing and unknown fields are errors."""
    names = schema.names
    width = len(names)
    kinds = set(map(type, rows))
    sized = set(map(len, rows)) if all(issubclass(k, dict | tuple | list) for k in kinds) else None
    if sized is None or sized - {width}:
        _refuse_shape(rows, names, step)
    if not rows:
        return schema.empty_table()
    columns: Iterable[Sequence[Any]]
    if all(issubclass(k, dict) for k in kinds):
        try:
            columns = [list(map(itemgetter(name), rows)) for name in names]
        except KeyError:
            _refuse_shape(rows, names, step)
            raise
    elif not any(issubclass(k, dict) for k in kinds):
        columns = list(zip(*rows, strict=True))
    else:
        columns = list(zip(*(_as_tuple(row, names, step) for row in rows), strict=True))
    arrays = [encode(column, field, step) for column, field in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)


def _as_tuple(row: Any, names: list[str], step: str) -> tuple[Any, ...]:
    if isinstance(row, dict):
        if row.keys() != set(names):
            raise RowError.wrong_fields(step, row, names)
        return tuple(row[name] for name in names)
    return tuple(row)


def _refuse_shape(rows: Sequence[Any], names: list[str], step: str) -> None:
    for row in rows:
        if isinstance(row, dict):
            if row.keys() != set(names):
                raise RowError.wrong_fields(step, row, names)
        elif not isinstance(row, tuple | list):
            raise RowError.not_a_row(step, row, names)
        elif len(row) != len(names):
            raise RowError.wrong_length(step, row, names)


_NONE = type(None)


@cache
def _exact_types(dtype: pa.DataType) -> frozenset[type] | None:
    """The Python types that Arrow converts to this type without surprise; None where each value must be looked at."""
    exact = exact_type(dtype)
    if exact is None:
        return None
    if exact is float:
        return frozenset((float, int, _NONE))
    return frozenset((exact, _NONE))


def exact_type(dtype: pa.DataType) -> type | None:
    """The one immutable Python type whose values need no conversion to be kept as this type, if there is one."""
    if dtype == pa.int64():
        return int
    if dtype == pa.float64():
        return float
    if dtype == pa.string():
        return str
    if dtype == pa.bool_():
        return bool
    if dtype == pa.binary():
        return bytes
    return None


def is_mutable(dtype: pa.DataType) -> bool:
    """Whether values of this type can be changed in place, as rows hold them: lists and maps, and structs that hold such."""
    if pa.types.is_struct(dtype):
        return any(is_mutable(field.type) for field in dtype)
    return pa.types.is_nested(dtype)  # type: ignore[no-any-return]


@cache
def converter(dtype: pa.DataType) -> Callable[[Any], Any]:
    """A function that turns a value into the one form state and rows keep for this type, or raises.

    What it returns shares nothing mutable with what it got, and equals what a round trip through Arrow gives back.
    """
    if dtype in _INT_BITS:
        return _integers(_INT_BITS[dtype])
    if pa.types.is_float64(dtype):
        return _double
    if pa.types.is_float32(dtype):
        return _float
    if pa.types.is_decimal(dtype):
        return partial(_decimal, precision=dtype.precision, scale=dtype.scale)
    if pa.types.is_timestamp(dtype):
        return _aware if dtype.tz else _naive
    if pa.types.is_list(dtype):
        item = nullable(dtype.value_type)
        return lambda value: [item(v) for v in _of(value, list, tuple)]
    if pa.types.is_map(dtype):
        key, entry = converter(dtype.key_type), nullable(dtype.item_type)
        return lambda value: {key(k): entry(v) for k, v in _of(value, dict).items()}
    if pa.types.is_struct(dtype):
        return _structs(tuple(f.name for f in dtype), [_field(f) for f in dtype])
    if pa.types.is_null(dtype):
        return _nothing
    return partial(_plain, kinds=_plain_types(dtype))


def nullable(dtype: pa.DataType) -> Callable[[Any], Any]:
    """As `converter`, letting None through."""
    inner = converter(dtype)
    return lambda value: None if value is None else inner(value)


def _field(field: pa.Field) -> Callable[[Any], Any]:
    fits = nullable(field.type) if field.nullable else converter(field.type)
    exact = exact_type(field.type)
    if exact is None or exact is int:  # any of its values is one of the field's, but for integers that are too large
        return fits
    return lambda value: value if type(value) is exact else fits(value)


def _plain_types(dtype: pa.DataType) -> tuple[type, ...]:
    if pa.types.is_boolean(dtype):
        return (bool, np.bool_)
    if pa.types.is_string(dtype):
        return (str,)
    if pa.types.is_binary(dtype):
        return (bytes, bytearray, memoryview)
    if pa.types.is_date(dtype):
        return (dt.date,)
    if pa.types.is_duration(dtype):
        return (dt.timedelta,)
    raise TypeError(f"type {dtype} is not supported")


def _plain(value: Any, kinds: tuple[type, ...]) -> Any:
    value = _of(value, *kinds)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, dt.datetime):
        raise TypeError("expected a date, got a datetime")
    if isinstance(value, np.bool_):
        return bool(value)
    return str(value) if isinstance(value, str) else value


def _of(value: Any, *kinds: type) -> Any:
    if not isinstance(value, kinds):
        raise TypeError(f"expected {' or '.join(k.__name__ for k in kinds)}, got {type(value).__name__}")
    return value


def _integers(bits: int) -> Callable[[Any], int]:
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def fits(value: Any) -> int:
        if type(value) is not int:
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"expected int, got {type(value).__name__}")
            value = int(value)
        if not least <= value <= most:
            raise OverflowError(f"does not fit {bits} bits")
        return value  # type: ignore[no-any-return]

    return fits


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):
        raise TypeError(f"expected float, got {type(value).__name__}")
    return float(value)


def _float(value: Any) -> float:
    with np.errstate(over="ignore"):
        number = float(np.float32(_double(value)))
    if math.isinf(number) and not math.isinf(value):
        raise OverflowError("does not fit 32 bits")
    return number


def _decimal(value: Any, precision: int, scale: int) -> decimal.Decimal:
    if isinstance(value, bool) or not isinstance(value, decimal.Decimal | int):
        raise TypeError(f"expected Decimal, got {type(value).__name__}")
    with decimal.localcontext(prec=76) as context:
        context.traps[decimal.Inexact] = False
        number = decimal.Decimal(value)
        if not number.is_finite():
            raise ValueError("a decimal must be finite")
        quantized = number.quantize(decimal.Decimal(1).scaleb(-scale))
        if quantized != number:
            raise ValueError(f"needs more than {scale} digits after the point")
        if quantized.adjusted() >= precision - scale and quantized != 0:
            raise OverflowError(f"does not fit {precision} digits")
        return quantized


def _aware(value: Any) -> dt.datetime:
    """A naive datetime is read as UTC, because a worker's local zone must not change results; an int as milliseconds."""
    if type(value) is dt.datetime and value.tzinfo is UTC and not value.fold:
        return value
    if not isinstance(value, dt.datetime):
        return _EPOCH_UTC + _since_epoch(value)
    moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    return dt.datetime(*moment.timetuple()[:6], moment.microsecond, tzinfo=UTC)


def _naive(value: Any) -> dt.datetime:
    if type(value) is dt.datetime and value.tzinfo is None and not value.fold:
        return value
    if not isinstance(value, dt.datetime):
        return _EPOCH + _since_epoch(value)
    if value.tzinfo is not None:
        raise TypeError("expected a datetime without time zone; use the type timestamp for one with a zone")
    return dt.datetime(*value.timetuple()[:6], value.microsecond)  # noqa: DTZ001


def milliseconds_of(moment: dt.datetime) -> int:
    """A datetime as milliseconds since the epoch, rounded down; one without a zone is read as UTC."""
    return (_aware(moment) - _EPOCH_UTC) // dt.timedelta(milliseconds=1)


def _since_epoch(value: Any) -> dt.timedelta:
    """Milliseconds since the epoch, as contexts give times."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"expected datetime, or int of milliseconds since the epoch, got {type(value).__name__}")
    if not _FIRST_MS <= value <= _LAST_MS:
        raise OverflowError("as milliseconds since the epoch it is not in the years 1 to 9999; is it of another unit?")
    return dt.timedelta(milliseconds=int(value))


def _structs(names: tuple[str, ...], fields: list[Callable[[Any], Any]]) -> Callable[[Any], Row]:
    row, known, width = row_class(names), set(names), len(names)

    def fits(value: Any) -> Row:
        if type(value) is not row:
            if isinstance(value, dict):
                if value.keys() != known:
                    raise ValueError(f"has fields {sorted(map(str, value))}, not {list(names)}")
                value = [value[name] for name in names]
            elif not isinstance(value, tuple | list) or len(value) != width:
                raise TypeError(f"expected a struct of {list(names)}")
        return tuple.__new__(row, [f(v) for f, v in zip(fields, value)])  # noqa: B905  they are as many, seen above

    return fits


def _nothing(value: Any) -> None:
    raise TypeError(f"a void field holds only None, got {type(value).__name__}")
