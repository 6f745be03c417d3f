"""Replay: after a job was taken back, the epochs it had computed already are computed again from the same offsets.

The planner, which is another process than the driver, finds them in `replay.json` in the outbox. They end where the job
was, so that sinks, which have their rows, fit to what follows.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from headwater.durable import write_atomically
from headwater.epoch.offsets import Offset
from headwater.errors import JobError

FILE = "replay.json"


@dataclass(frozen=True)
class PlannedEpoch:
    """An epoch that was planned before the job was taken back."""

    offset: Offset
    """The one after it."""
    committed: bool
    """Whether its rows, where they wait to be published, are the ones that count: it was committed, and they are there."""


class Replay:
    """The epochs to compute again, by number."""

    def __init__(self, epochs: dict[int, PlannedEpoch]) -> None:
        self.epochs = epochs

    @classmethod
    def read(cls, outbox: Path) -> Replay:
        """What is to be computed again in this job folder; mostly nothing."""
        path = outbox / FILE
        try:
            return cls.of(json.loads(path.read_text()))
        except FileNotFoundError:
            return cls({})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JobError.corrupt(str(path), str(error)) from None

    @classmethod
    def of(cls, content: dict[str, Any]) -> Replay:
        """The reverse of `content`."""
        return cls({one["offset"]["epoch"] - 1: PlannedEpoch(**one) for one in content["epochs"]})

    def content(self) -> dict[str, Any]:
        """As it is stored."""
        return {"epochs": [asdict(self.epochs[epoch]) for epoch in sorted(self.epochs)]}

    def write(self, outbox: Path) -> None:
        """Let the planner find it."""
        write_atomically(outbox / FILE, json.dumps(self.content()).encode())

    def remove_when_done(self, outbox: Path, epoch: int) -> None:
        """Forget the file once an epoch after all of them is being computed."""
        if self.epochs and epoch > max(self.epochs):
            (outbox / FILE).unlink(missing_ok=True)
            self.epochs = {}

    def next_offset(self, start: Offset) -> Offset | None:
        """The offset that the epoch after `start` had; None where a new one is to be planned."""
        planned = self.epochs.get(start["epoch"])
        return None if planned is None else planned.offset

    def was_committed(self, epoch: int) -> bool:
        """Whether an epoch was committed before the job was taken back."""
        return epoch in self.epochs and self.epochs[epoch].committed
