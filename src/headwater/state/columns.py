"""Columns that are written in place: the values of many places are read or set at once."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.data.rows import decode, recode

Places = npt.NDArray[np.int64]
_LEAST_ROOM = 1024


class Column(Protocol):
    """Values by place, from 0 on."""

    def take(self, places: Places) -> pa.Array:
        """The values at places that were put."""

    def put(self, places: Places, values: pa.Array) -> None:
        """Set the values at places, the last one where a place is there again. The first place without a value comes next."""


def column_of(dtype: pa.DataType) -> Column:
    """A column without values."""
    if pa.types.is_boolean(dtype):
        return _Booleans()
    if pa.types.is_primitive(dtype) or pa.types.is_decimal(dtype):
        return _Words(dtype)
    if pa.types.is_list(dtype):
        return _Lists(dtype)
    return _Values(dtype)


class _Words:
    """Values of a fixed number of bytes, held as such; what stands for a null is zero."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._type = dtype
        width = dtype.byte_width
        self._word = np.dtype(f"u{width}" if width <= np.dtype(np.uint64).itemsize else f"V{width}")
        self._values: npt.NDArray[Any] = np.zeros(0, self._word)
        self._is_valid = np.zeros(0, np.bool_)

    def take(self, places: Places) -> pa.Array:
        is_valid = self._is_valid[places]
        nulls = None if is_valid.all() else pa.py_buffer(np.packbits(is_valid, bitorder="little"))
        return pa.Array.from_buffers(self._type, len(places), [nulls, pa.py_buffer(self._values[places])])

    def put(self, places: Places, values: pa.Array) -> None:
        size = int(places.max(initial=-1)) + 1
        if size > len(self._values):
            self._values = _longer(self._values, size)
            self._is_valid = _longer(self._is_valid, size)
        words = np.frombuffer(values.buffers()[1] or b"", self._word)[values.offset : values.offset + len(values)]
        if values.null_count:
            is_valid = values.is_valid().to_numpy(zero_copy_only=False)
            self._values[places] = np.where(is_valid, words, np.zeros(1, self._word))
            self._is_valid[places] = is_valid
        else:
            self._values[places] = words
            self._is_valid[places] = True


class _Booleans:
    """Truth values, which Arrow packs into bits, as bytes."""

    def __init__(self) -> None:
        self._bytes = _Words(pa.uint8())

    def take(self, places: Places) -> pa.Array:
        return self._bytes.take(places).cast(pa.bool_())

    def put(self, places: Places, values: pa.Array) -> None:
        self._bytes.put(places, values.cast(pa.uint8()))


class _Lists:
    """Lists, whose items are values of a column. A list that is put anew leaves its old items behind, for a while."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._type = dtype
        self._items = column_of(dtype.value_type)
        self._end = 0
        """Where the next items go."""
        self._starts, self._sizes = np.zeros(0, np.int64), np.zeros(0, np.int64)
        self._is_valid = np.zeros(0, np.bool_)

    def take(self, places: Places) -> pa.Array:
        sizes, is_valid = self._sizes[places], self._is_valid[places]
        items = self._items.take(_ranges(self._starts[places], sizes))
        offsets = pa.array(np.concatenate([[0], sizes.cumsum()]).astype(np.int32))
        mask = None if is_valid.all() else pa.array(~is_valid)
        return pa.ListArray.from_arrays(offsets, items, type=self._type, mask=mask)

    def put(self, places: Places, values: pa.Array) -> None:
        size = int(places.max(initial=-1)) + 1
        if size > len(self._sizes):
            self._starts, self._sizes = _longer(self._starts, size), _longer(self._sizes, size)
            self._is_valid = _longer(self._is_valid, size)
        sizes = values.value_lengths().fill_null(0).to_numpy().astype(np.int64)
        items = values.flatten()
        if len(items):
            self._items.put(np.arange(self._end, self._end + len(items)), items)
        self._starts[places] = self._end + sizes.cumsum() - sizes
        self._sizes[places] = sizes
        self._is_valid[places] = values.is_valid().to_numpy(zero_copy_only=False)
        self._end += len(items)
        if self._end > _LEAST_ROOM + 2 * int(self._sizes.sum()):
            self._leave_out_the_old()

    def _leave_out_the_old(self) -> None:
        kept = self._items.take(_ranges(self._starts, self._sizes))
        self._items, self._end = column_of(self._type.value_type), len(kept)
        self._items.put(np.arange(len(kept)), kept)
        self._starts = self._sizes.cumsum() - self._sizes


def _ranges(starts: Places, sizes: Places) -> Places:
    """The places from each start on, as many as its size says, end to end."""
    ends = sizes.cumsum()
    places: Places = np.arange(int(ends[-1]) if len(ends) else 0)
    places += np.repeat(starts - (ends - sizes), sizes)
    return places


class _Values:
    """Values of any length, as Python has them."""

    def __init__(self, dtype: pa.DataType) -> None:
        self._type = dtype
        self._values: list[Any] = []

    def take(self, places: Places) -> pa.Array:
        return recode(list(map(self._values.__getitem__, places.tolist())), self._type)

    def put(self, places: Places, values: pa.Array) -> None:
        self._values += [None] * (int(places.max(initial=-1)) + 1 - len(self._values))
        for place, value in zip(places.tolist(), decode(values), strict=True):
            self._values[place] = value


def _longer(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    """The values with room for as many again, so that growing costs each value the same however many there are."""
    longer = np.zeros(max(_LEAST_ROOM, 2 * size), values.dtype)
    longer[: len(values)] = values
    return longer
