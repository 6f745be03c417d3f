"""The offset of a job: where every split of every source stands, the epoch's number, its time, and whether input ended.

For sources that want it, it also says when each split last had rows and which watermark it has reached; for unaligned
epochs, how long steps may work and how many rows sources give. An engine keeps it as JSON in a log of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from headwater.data.batch import MIN_TIMESTAMP
from headwater.versioned import Versioned

BySplit = Mapping[str, Mapping[str, int]]
"""A number per source uid and split."""


@dataclass(frozen=True)
class Pace:
    """How sources read in unaligned epochs."""

    rows: int
    """What each may give to an epoch."""
    paused: bool


@dataclass(frozen=True)
class Offset(Versioned):
    """What lies between two epochs. What an epoch reads, and what time it is in it, follow from its two offsets alone."""

    epoch: int
    """The number of the epoch after it."""
    end: bool
    """Whether the input has ended."""
    positions: BySplit
    """The position of the next row to read."""
    started_ms: int | None = None
    """When the job began; None where a savepoint was made from tables, and the job that starts from it begins it."""
    now_ms: int = MIN_TIMESTAMP
    """The time of the epoch before it."""
    active_ms: BySplit = field(default_factory=dict)
    """When splits last had rows, of sources that can be idle."""
    marks: BySplit = field(default_factory=dict)
    """The watermarks that splits have reached, of sources that are aligned."""
    pace: Pace | None = None
    """Of unaligned epochs."""
    unaligned_ms: int | None = None
    """How long a step may work on rows in the epoch before it; None where that epoch is aligned."""

    def since_start_ms(self, now_ms: int) -> int:
        """How long the job has been there."""
        return 0 if self.started_ms is None else now_ms - self.started_ms

    def _content(self) -> dict[str, Any]:
        """What is not known is left out, as are the words for unaligned epochs where there are none."""
        pace = None if self.pace is None else {"rows": self.pace.rows, "paused": self.pace.paused}
        return {name: value for name, value in {**super()._content(), "pace": pace}.items() if value is not None}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        pace = content.get("pace")
        return super()._of({**content, "pace": None if pace is None else Pace(**pace)}, where)
