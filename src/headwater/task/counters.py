"""What one call of a host or a source split tells of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headwater.late_rows import LateRow, late_rows_of
from headwater.measures import Measured, Measures, beside


@dataclass(frozen=True)
class StepCounters:
    """A step on one subtask, or a source on one split, in one epoch."""

    rows_in: int
    rows_out: int
    watermark_ms: int
    state: Mapping[str, int] = field(default_factory=dict)
    """How many entries each state has."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """What the step counts itself, by name."""
    in_flight: int = 0
    """The rows that wait for the next epoch."""
    budget: int | None = None
    """How many rows the next epoch may handle; None where the epoch was aligned."""
    furthest_ms: int | None = None
    """Of a source: the largest timestamp, where it is far ahead of all that is likely."""
    absent: Sequence[str] = ()
    """Of a source that looks for columns by name: those in which no row had a value."""
    outputs: Mapping[str, int] = field(default_factory=dict)
    """Of `rows_out`, or beside them for a source, those that went to side outputs, by tag."""
    busy_us: int = field(default=0, compare=False)
    """How long it took, with the steps behind it that run in the same call."""
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    """What each state takes, about, as columns, by what was written of it."""

    late_rows: Sequence[LateRow] = ()
    """The newest of those that it dropped."""

    metrics: Measures = field(default_factory=dict)
    """What its function measures, by name."""

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> StepCounters:
        """The reverse of `asdict`."""
        metrics = {name: Measured(**one) for name, one in facts.get("metrics", {}).items()}
        return cls(**{**facts, "metrics": metrics, "late_rows": late_rows_of(facts.get("late_rows", ()))})

    def plus(self, other: StepCounters) -> StepCounters:
        """The rows of a step without state that get to it in two ways."""
        tags = {**self.outputs, **other.outputs}
        outputs = {tag: self.outputs.get(tag, 0) + other.outputs.get(tag, 0) for tag in tags}
        return replace(
            self,
            rows_in=self.rows_in + other.rows_in,
            rows_out=self.rows_out + other.rows_out,
            watermark_ms=min(self.watermark_ms, other.watermark_ms),
            outputs=outputs,
            metrics=beside([self.metrics, other.metrics]),
        )
