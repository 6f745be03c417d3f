"""Replay: after a job was taken back, the epochs it had computed already are computed again from the same offsets.

The planner, which is another process than the driver, finds them in the outbox. They end where the job
was, so that sinks, which have their rows, fit to what follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from headwater.epoch.offset import Offset
from headwater.job.layout import OutboxLayout
from headwater.versioned import Versioned


@dataclass(frozen=True)
class PlannedEpoch:
    """An epoch that was planned before the job was taken back."""

    offset: Offset
    """The one after it."""
    committed: bool
    """Whether its rows, where they wait to be published, are the ones that count: it was committed, and they are there."""


@dataclass(frozen=True)
class Replay(Versioned):
    """The epochs to compute again, by number."""

    epochs: Mapping[int, PlannedEpoch] = field(default_factory=dict)

    @classmethod
    def in_outbox(cls, outbox: OutboxLayout) -> Replay:
        """What is to be computed again in this job folder; mostly nothing."""
        return cls.read_if_there(outbox.replay) or cls()

    def write_into(self, outbox: OutboxLayout) -> None:
        """Let the planner find it."""
        self.write(outbox.replay)

    def after(self, epoch: int, outbox: OutboxLayout) -> Replay:
        """What is left when an epoch is being computed; the file goes when that is nothing."""
        if not self.epochs or epoch <= max(self.epochs):
            return self
        outbox.replay.unlink(missing_ok=True)
        return Replay()

    def next_offset(self, start: Offset) -> Offset | None:
        """The offset that the epoch after `start` had; None where a new one is to be planned."""
        planned = self.epochs.get(start.epoch)
        return None if planned is None else planned.offset

    def was_committed(self, epoch: int) -> bool:
        """Whether an epoch was committed before the job was taken back."""
        return epoch in self.epochs and self.epochs[epoch].committed

    def _content(self) -> dict[str, Any]:
        epochs = [self.epochs[epoch] for epoch in sorted(self.epochs)]
        return {"epochs": [{"offset": one.offset.to_json(), "committed": one.committed} for one in epochs]}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        epochs = [PlannedEpoch(Offset.from_json(one["offset"], where), one["committed"]) for one in content["epochs"]]
        return cls({one.offset.epoch - 1: one for one in epochs})
