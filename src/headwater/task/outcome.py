"""What a task gives besides state changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.data.batch import Batch
from headwater.task.counters import StepCounters
from headwater.task.outlet import Routed


@dataclass
class Outcome:
    """What a call of a host or a source split gives besides state changes."""

    payloads: list[Routed] = field(default_factory=list)
    epoch: int = 0
    sink_batches: dict[str, list[Batch]] = field(default_factory=dict)
    unread: dict[str, list[Batch]] = field(default_factory=dict)
    """Rows for side outputs that nobody reads, where the plan keeps them."""
    steps: dict[str, StepCounters] = field(default_factory=dict)
    """By uid."""
