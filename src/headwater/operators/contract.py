"""What the runtime asks of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from headwater.data.batch import Batch
from headwater.late_rows import LateRow
from headwater.measures import Measured
from headwater.state.table import StateTable

Emit = Callable[[str | None, Batch], None]
"""Takes what an operator emits: the side output's name, or None for the main output, and the rows."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """Where a step stands in event time and in processing time."""

    watermark_ms: int
    now_ms: int


class StatelessOperator(Protocol):
    """Turns a batch into batches; keeps nothing that must survive."""

    def apply(self, batch: Batch) -> Iterable[tuple[str | None, Batch]]:
        """The outputs for a batch."""


@runtime_checkable
class TakesTime(Protocol):
    """A stateless step that must know what time it is."""

    def begin(self, now_ms: int) -> None:
        """An epoch begins, at this processing time."""


@runtime_checkable
class SetsTime(Protocol):
    """A stateless step behind which event time is its own. What it says of an epoch depends on that alone."""

    def watermark(self, heard_ms: int, *, is_idle: bool) -> tuple[int, bool]:
        """How far event time has come, and whether nobody waits for it, by the rows of the epoch or by what is heard.

        The minimum is that there is nothing to say.
        """


@runtime_checkable
class HoldsOpen(Protocol):
    """A stateless step that holds something open: a loop, a connection."""

    def close(self) -> None:
        """Let go of it: the place the step runs in is given up."""


@runtime_checkable
class Measuring(Protocol):
    """A stateless step whose function may measure something."""

    def measured(self) -> dict[str, Measured]:
        """What was measured since the last call, by name."""


class Combiner(Protocol):
    """Makes rows fewer on their way to a step that can take them combined."""

    def combine(self, batch: Batch) -> Batch | None:
        """The rows combined, or None when that would not pay; depends on the batch alone."""


@runtime_checkable
class TakesCombined(Protocol):
    """A step that takes what its combiner made."""

    def process_combined(self, batch: Batch, time: StepTime, emit: Emit) -> int:
        """Handle combined rows; gives how many rows they were made of."""


@dataclass(frozen=True, slots=True)
class TwoInputs:
    """The rows of an epoch of a step with two inputs."""

    left: Batch | None
    right: Batch | None
    turns: npt.NDArray[np.int8] | None = None
    """For steps that need order: the side of the first row, the second, and so on."""

    def __len__(self) -> int:
        return sum(len(side) for side in (self.left, self.right) if side is not None)


class StatefulOperator(Protocol):
    """What every step of a level does: gets rows, then the advance of event time, then of processing time, once an epoch.

    An operator that extends it does what most do where it says nothing: it waits for no time, keeps nothing besides its
    tables, and counts nothing.
    """

    needs_order: bool
    """Whether results depend on the order of rows of different channels."""

    def advance_watermark(self, time: StepTime, emit: Emit) -> None:
        """Event time has moved to the watermark in `time`."""
        return

    def advance_clock(self, time: StepTime, emit: Emit) -> None:
        """Processing time has moved to the `now_ms` in `time`."""
        return

    def tables(self) -> dict[str, StateTable]:
        """The operator's state by name, in a fixed order."""
        return {}

    def counters(self) -> dict[str, int]:
        """What was counted since the last call, by name; nothing that a replay depends on."""
        return {}

    def late_rows(self) -> tuple[LateRow, ...]:
        """The newest of the late rows that were dropped since the last call."""
        return ()

    def measured(self) -> dict[str, Measured]:
        """What its function has measured since the last call, by name."""
        return {}

    def meta(self) -> dict[str, Any]:
        """The few facts, besides its tables, that must survive."""
        return {}

    def set_meta(self, meta: dict[str, Any]) -> None:
        """Take over what `meta` gave."""
        return

    def merged_meta(self, metas: Sequence[dict[str, Any]], subtask: int, parallelism: int) -> dict[str, Any]:
        """What to take over on one of `parallelism` subtasks, of what all subtasks gave before their number changed."""
        return {}

    def reset(self) -> None:
        """Become as new."""
        for table in self.tables().values():
            table.clear_all()


class TakesOne(StatefulOperator, Protocol):
    """A step with one input."""

    def process(self, batch: Batch, time: StepTime, emit: Emit) -> None:
        """Handle rows, in order; `time` holds the watermark that stood when the epoch began."""


@runtime_checkable
class TakesTwo(StatefulOperator, Protocol):
    """A step with two inputs."""

    def process_two(self, inputs: TwoInputs, time: StepTime, emit: Emit) -> None:
        """Handle rows; `time` holds the watermark that stood when the epoch began."""


Operator = TakesOne | TakesTwo
