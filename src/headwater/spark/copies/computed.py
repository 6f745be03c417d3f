"""What an epoch of a subtask comes to, before Spark has any of it: one process may compute it for another."""

from __future__ import annotations

from dataclasses import dataclass, field

from headwater.epoch.reports import TaskReport
from headwater.state.changelog import Head, RecordStore
from headwater.task.outlet import Routed


@dataclass(frozen=True, order=True)
class Place:
    """A subtask of a level."""

    level: int
    subtask: int

    def __str__(self) -> str:
        return f"level {self.level}, subtask {self.subtask}"


@dataclass
class Additions:
    """What an attempt adds to a changelog, to be written where the changelog is. A `RecordStore` to append to."""

    before: Head | None
    after: Head | None = None
    records: list[tuple[int, str, bytes]] = field(default_factory=list)
    """Number, token and record."""
    removed: list[int] = field(default_factory=list)

    def head(self) -> Head | None:
        return self.before

    def set_head(self, head: Head) -> None:
        self.after = head

    def token(self, sequence: int) -> str | None:
        raise NotImplementedError("what is added is not read")

    def read(self, sequence: int) -> bytes | None:
        raise NotImplementedError("what is added is not read")

    def write(self, sequence: int, token: str, record: bytes) -> None:
        self.records.append((sequence, token, record))

    def remove(self, sequence: int) -> None:
        self.removed.append(sequence)

    def write_to(self, store: RecordStore) -> None:
        """Put it where it belongs."""
        for sequence in self.removed:
            store.remove(sequence)
        for sequence, token, record in self.records:
            store.write(sequence, token, record)
        assert self.after is not None
        store.set_head(self.after)


@dataclass(frozen=True)
class Computed:
    """What goes to other subtasks, and what the driver is told. What the state's changelog gets is where it belongs."""

    payloads: list[Routed]
    report: TaskReport


@dataclass(frozen=True)
class ComputedForAnother:
    """What a worker has computed, with what the one that asked has to put into the changelog."""

    computed: Computed
    additions: Additions
