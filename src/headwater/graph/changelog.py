"""What the rows on an edge do to the table they describe: only add to it, or also change it and take from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class ChangelogMode(Enum):
    """How a stream tells of changes."""

    APPEND = "append-only"
    """Rows are added (+I), and that is all."""
    UPSERT = "upsert"
    """A row replaces the one with its key (+I, +U), or takes it away (-D). What was there before is not told."""
    RETRACT = "retract"
    """A row that changes is taken back (-U) before the new one comes (+U), one that goes is told whole (-D)."""


Modes = frozenset[ChangelogMode]
APPEND: Modes = frozenset({ChangelogMode.APPEND})
APPEND_OR_RETRACT: Modes = frozenset({ChangelogMode.APPEND, ChangelogMode.RETRACT})
ANY: Modes = frozenset(ChangelogMode)
"""What an input takes. One that takes retractions gets them of an upsert changelog, too: the planner sees to it."""


@dataclass(frozen=True)
class Changelog:
    """What an edge carries."""

    mode: ChangelogMode
    key: tuple[str, ...] = ()
    """Of an upsert changelog: the columns of the key, of which there is one row at a time."""
    keeps_times: bool = True
    """Whether a row is taken back with the event time with which it was given, so that windows can find it again."""

    @property
    def is_append_only(self) -> bool:
        """Whether rows are only added."""
        return self.mode is ChangelogMode.APPEND

    def retracting(self) -> Changelog:
        """The same changes, with everything told that goes."""
        if self.mode is not ChangelogMode.UPSERT:
            return self
        return Changelog(ChangelogMode.RETRACT, keeps_times=False)  # a row goes at the time of the one that replaces it

    def fits(self, taken: Modes) -> bool:
        """Whether an input that takes these can have it, completed by the planner if need be."""
        return self.mode in taken or self.retracting().mode in taken

    def describe(self) -> str:
        """In words."""
        return f"{self.mode.value} by {', '.join(self.key)}" if self.key else self.mode.value


APPEND_ONLY = Changelog(ChangelogMode.APPEND)


def together(parts: Sequence[Changelog]) -> Changelog:
    """What streams carry when they become one: keys of different streams may be the same, so upserts do not stay."""
    if len(parts) == 1:
        return parts[0]
    if all(part.is_append_only for part in parts):
        return APPEND_ONLY
    return Changelog(ChangelogMode.RETRACT, keeps_times=all(part.keeps_times for part in parts))
