"""Sums of floats without rounding, so that what is taken back leaves nothing behind, whatever its size.

A sum is a whole number of very small units, in digits of 32 bits; a float has at most three of them. The digits of a sum all
have its sign and zeros are left out, so equal sums have equal bytes however the rows were cut. Infinite values and NaN are
counted beside the digits. A digit is one word, digit << 8 | place. They are stored state: the constants here are part of
its format.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headwater.operators.aggregation.kernel import Bools, Floats, Groups, Ints, list_sizes, to_lists

DIGITS = pa.list_(pa.int64())
"""The type of an exact sum."""

_DIGIT_BITS, _PLACE_BITS = 32, 8
_DIGIT, _PLACE = (1 << _DIGIT_BITS) - 1, (1 << _PLACE_BITS) - 1
_UNIT = 2304
"""A unit is 2 to the power of minus this; the square of the smallest float is a multiple of it."""
_MANTISSA_BITS, _HALF_BITS = 53, 27
_INFINITE, _MINUS_INFINITE, _NAN = _COUNTED = (253, 254, 255)
"""The places of counts; no digit is above place 145."""


def exact_sums(floats: Floats, groups: Groups) -> pa.Array:
    """The sum of the floats of each group, each with the sign of its row."""
    signs = _signs(floats, groups)
    finite = np.isfinite(floats)
    mantissas, powers = _taken_apart(floats[finite])
    places, digits, of = _digits(mantissas * signs[finite], powers, groups.of[finite])
    if not finite.all():
        rest = floats[~finite]
        kinds = np.select([np.isnan(rest), rest > 0], [_NAN, _INFINITE], _MINUS_INFINITE)
        places, digits = np.concatenate([places, kinds]), np.concatenate([digits, signs[~finite]])
        of = np.concatenate([of, groups.of[~finite]])
    return _sums(places, digits, Groups(of, groups.count))


def exact_sums_of_squares(floats: Floats, groups: Groups) -> pa.Array:
    """The sum of the squares of the floats of each group that are finite, each with the sign of its row."""
    finite = np.isfinite(floats)
    mantissas, powers = _taken_apart(np.abs(floats[finite]))
    high, low = mantissas >> _HALF_BITS, mantissas & ((1 << _HALF_BITS) - 1)
    products = np.concatenate([high * high, 2 * high * low, low * low])
    powers = np.concatenate([2 * powers + 2 * _HALF_BITS, 2 * powers + _HALF_BITS, 2 * powers])
    signs, of = (np.tile(values[finite], 3) for values in (_signs(floats, groups), groups.of))
    places, digits, of = _digits(products * signs, powers, of)
    return _sums(places, digits, Groups(of, groups.count))


def merged_sums(sums: pa.Array, groups: Groups) -> pa.Array:
    """The sum of the sums of each group."""
    words = sums.flatten().to_numpy()
    return _sums(words & _PLACE, words >> _PLACE_BITS, groups.repeat(list_sizes(sums)))


def as_floats(sums: pa.Array) -> Floats:
    """Each sum as a float, off by less than one in its last bit."""
    words, sizes = sums.flatten().to_numpy(), list_sizes(sums)
    places, digits = words & _PLACE, words >> _PLACE_BITS
    groups = Groups(np.repeat(np.arange(len(sizes)), sizes), len(sizes))
    is_digit = places < _INFINITE
    powers = (places[is_digit] * _DIGIT_BITS - _UNIT).astype(np.int32)
    with np.errstate(over="ignore"):
        found = groups.where(is_digit).add_floats(np.ldexp(digits[is_digit].astype(np.float64), powers))
    if not is_digit.all():
        infinite, minus, nan = (groups.where((places == place) & (digits > 0)).sizes > 0 for place in _COUNTED)
        found[infinite], found[minus], found[nan | (infinite & minus)] = np.inf, -np.inf, np.nan
    return found


def are_finite(sums: pa.Array) -> Bools:
    """Whether there is no infinite value and no NaN in each sum."""
    words, sizes = sums.flatten().to_numpy(), list_sizes(sums)
    counted = (words & _PLACE >= _INFINITE) & (words > _PLACE)
    found: Bools = Groups(np.repeat(np.arange(len(sizes)), sizes)[counted], len(sizes)).sizes == 0
    return found


def as_integers(sums: pa.Array) -> list[int]:
    """The finite part of each sum, as a whole number of units."""
    return [
        sum((word >> _PLACE_BITS) << (word & _PLACE) * _DIGIT_BITS for word in words if word & _PLACE < _INFINITE)
        for words in sums.to_pylist()
    ]


def in_units(number: int) -> int:
    """A whole number as one of units."""
    return number << _UNIT


def _signs(floats: Floats, groups: Groups) -> Ints:
    return np.ones(len(floats), np.int64) if groups.signs is None else groups.signs


def _taken_apart(floats: Floats) -> tuple[Ints, Ints]:
    """Finite floats as whole numbers times powers of two."""
    fractions, powers = np.frexp(floats)
    return np.ldexp(fractions, _MANTISSA_BITS).astype(np.int64), powers.astype(np.int64) - _MANTISSA_BITS


def _digits(values: Ints, powers: Ints, of: Ints) -> tuple[Ints, Ints, Ints]:
    """Whole numbers of at most 55 bits times powers of two, as three digits each: the places, the digits, the groups."""
    bits = powers + _UNIT
    places, shifts = bits >> 5, bits & (_DIGIT_BITS - 1)
    low = (values & _DIGIT) << shifts
    high = ((values >> _DIGIT_BITS) << shifts) + (low >> _DIGIT_BITS)
    digits = np.concatenate([low & _DIGIT, high & _DIGIT, high >> _DIGIT_BITS])
    return np.concatenate([places, places + 1, places + 2]), digits, np.tile(of, 3)


def _sums(places: Ints, digits: Ints, groups: Groups) -> pa.Array:
    """The digits, or counts, of each group added up, place by place, and carried."""
    lowest = int(places.min(initial=_INFINITE))
    highest = int(places[places < _INFINITE].max(initial=lowest - 1))
    named = np.append(np.arange(lowest, highest + 2), _COUNTED)
    rows = np.where(places < _INFINITE, places - lowest, places - _INFINITE + len(named) - len(_COUNTED))
    table = np.zeros((len(named), groups.count), np.int64)
    np.add.at(table, (rows, groups.of), digits)
    sums = table[: -len(_COUNTED)]
    _carry(sums)
    negative = sums[-1] < 0
    if negative.any():
        sums[:, negative] *= -1
        _carry(sums)
        sums[:, negative] *= -1
    of, at = np.nonzero(table.T)
    return to_lists(pa.array(table[at, of] << _PLACE_BITS | named[at]), Groups(of, groups.count).sizes)


def _carry(sums: Ints) -> None:
    """Bring all digits but the highest between 0 and the largest digit."""
    for place in range(len(sums) - 1):
        sums[place + 1] += sums[place] >> _DIGIT_BITS
        sums[place] &= _DIGIT
