"""Accumulators by key, for steps that aggregate whole columns: what is kept is held by columns too, wherever it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.descriptors import ValueState, state_of_type
from headwater.state.backend import StateBackend
from headwater.state.kept_columns import Fold
from headwater.state.memory_backend import MEMORY
from headwater.state.spread import BY_KEY, Spread
from headwater.state.table import KeyedLayout, StateTable


class Accumulators(Protocol):
    """One row of accumulators for each key."""

    def update(self, keys: Sequence[Any], fold: Fold) -> pa.Table:
        """Set the accumulators of keys, each of which is there once, to what `fold` makes of those kept; gives them."""

    def has(self, keys: Sequence[Any]) -> npt.NDArray[np.bool_]:
        """Which of the keys have accumulators."""

    def remove(self, keys: Sequence[Any]) -> None:
        """Forget keys that have accumulators."""

    def last(self, keys: Sequence[Any]) -> npt.NDArray[np.int64]:
        """The last accumulator, an integer, of keys that have accumulators."""

    @property
    def table(self) -> StateTable:
        """What the changelog gets."""


def open_accumulators(
    name: str,
    schema: pa.Schema,
    step: str,
    key: pa.DataType,
    spread: Spread = BY_KEY,
    *,
    backend: StateBackend = MEMORY,
) -> Accumulators:
    """The accumulators of a step, under the name of a state."""
    value = pa.struct([pa.field(f"f{place}", field.type) for place, field in enumerate(schema)])
    declaration = state_of_type(ValueState(name, "boolean"), value)
    return backend.accumulators(KeyedLayout(step, name, key, declaration.columns(), spread), schema)
