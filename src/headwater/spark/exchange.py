"""The exchange: which values of the grouping column land on which of Spark's partitions.

Spark places a row of `groupBy(subtask)` by a hash of the value. To give every subtask a partition of its own, subtasks
travel as small integers chosen so that their hashes cover all partitions once.
"""

from __future__ import annotations

from functools import lru_cache

_MASK = 0xFFFFFFFF
_SEED = 42


@lru_cache(maxsize=64)
def salts(parallelism: int) -> tuple[int, ...]:
    """For each subtask, the integer that Spark puts on that subtask's partition."""
    found: dict[int, int] = {}
    value = 0
    while len(found) < parallelism:
        found.setdefault(hash_int(value) % parallelism, value)
        value += 1
    return tuple(found[partition] for partition in range(parallelism))


def hash_int(value: int) -> int:
    """Spark's hash of an int column: Murmur3 (x86, 32 bits) with seed 42, as a signed number."""
    word = _rotate((value & _MASK) * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    state = (_rotate(_SEED ^ word, 13) * 5 + 0xE6546B64) & _MASK
    state ^= 4
    state = (state ^ state >> 16) * 0x85EBCA6B & _MASK
    state = (state ^ state >> 13) * 0xC2B2AE35 & _MASK
    state ^= state >> 16
    return state - (1 << 32) if state >= 1 << 31 else state


def _rotate(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
