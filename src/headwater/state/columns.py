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
