"""What a source and a sink must be able to do. Connectors know neither Spark nor the runtime."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pyarrow as pa

from headwater.data.schema import Schema
from headwater.functions import OutputTag

Positions = dict[str, int]
"""For each split of a source, the position of the next row to read."""
NO_SPLIT = "(no splits)"
"""Speaks for a source that has no splits: event time waits for it, or need not, as for one of its splits."""
FOR_EVER_MS = 1 << 40
"""Longer than a job runs: a source that gives its rows at a rate has given them all by then."""


DEAD_LETTERS = OutputTag("dead_letters", "source string, split string, position bigint, reason string, value binary")
"""Where a source puts records that cannot be read, if it is set to: what they are, where they stand and what is wrong."""


@dataclass(frozen=True)
class DeadLetters:
    """Records that a source cannot read, as rows of `DEAD_LETTERS`."""

    table: pa.Table

    @classmethod
    def of(cls, source: Source, split: str, position: int, reason: str, value: bytes | None) -> DeadLetters:
        """One such record."""
        row = (source.describe(), split, position, reason, value)
        return cls(pa.Table.from_arrays([[fact] for fact in row], schema=DEAD_LETTERS.schema.arrow))


class Guarantee(Enum):
    """How often a row takes effect where it is published, whatever fails."""

    EXACTLY_ONCE = "exactly-once"
    EFFECTIVELY_ONCE = "effectively-once"
    """A row may be written again, over itself: what a reader finds in the end is as if it was written once."""
    AT_LEAST_ONCE = "at-least-once"
    AT_MOST_ONCE = "at-most-once"
    NONE = "no guarantee"
    """Rows may be missing and others doubled."""

    def __str__(self) -> str:
        return self.value


class Source(ABC):
    """A replayable input made of splits, each an ordered sequence of rows at integer positions.

    Reading the same range of a split again must give the same rows in the same order; that is what exactly-once rests on.
    """

    bounded: bool = False
    """Whether the input has an end of its own; `latest` of a bounded source never changes."""
    replayable: bool = True
    """False for a source that breaks the rule above: its rows are lost when the epoch that read them is computed again."""
    has_dead_letters: bool = False
    """Whether `read` gives records that it cannot read as `DeadLetters`; otherwise it fails at the first of them."""
    finds_columns_by_name: bool = False
    """Whether a record may lack a column, as JSON may, so that a name which is wrong gives nulls and no error."""
    max_positions_per_epoch: int | None = None
    """The most that an epoch reads of it, in place of `max_rows_per_epoch`, if what stands at a position is no row but
    something larger, as a file."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    @abstractmethod
    def describe(self) -> str:
        """What this is, in a few words, without secrets."""

    @abstractmethod
    def check(self, schema: Schema) -> None:
        """Refuse, before the job starts, what cannot be read as `schema`."""

    def can_read(self, schema: Schema) -> bool:
        """Whether its rows can be read with no more than these columns, and fields in them, of those that it has."""
        return False

    @abstractmethod
    def earliest(self) -> Positions:
        """Where each split starts; its keys are the splits."""

    @abstractmethod
    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        """Where each split ends at this moment; `elapsed_ms` is the time since the job first started."""

    @abstractmethod
    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        """The rows at positions start <= p < end of one split, in order."""

    def release(self, split: str) -> None:  # noqa: B027  most sources hold nothing open
        """Give up what is held open to read a split, in the process that read it; reading it again opens it again."""

    def remember_in(self, folder: Path) -> None:  # noqa: B027  positions are enough for most sources
        """Called in the driver before `check`: a folder of the job's own where this source may keep notes.

        They are files that are only added to, or only added: readers of this source find them at the same path in all
        processes. They go into savepoints, and are there again before a job that goes on from one calls this.
        """

    def needed(self, folder: Path, positions: Positions) -> Iterator[Path]:
        """The files in such a folder that a job needs to go on from these positions; by default all of them.

        They are copied one by one as they are given, while the job perhaps goes on. One that is gone by then is left out.
        """
        yield from (path for path in sorted(folder.rglob("*")) if path.is_file())

    def published(self, positions: Positions) -> None:  # noqa: B027  most sources need not know
        """Called in the driver when an epoch that reads up to these positions is committed and published.

        For those who watch the job from outside, as by a consumer group; the job itself never asks. Not called for
        every epoch if the process dies in between, and not to fail: what is wrong goes to the log.
        """

    def rows_after(self, positions: Positions) -> int | None:
        """About how many rows there are at and after these positions; None where that is not cheap to know.

        Asked every few seconds in the driver while somebody looks at the job, on a thread of its own: it shares nothing
        with what reads, and may fail.
        """
        return None


@dataclass(frozen=True)
class Staged:
    """One file of staged rows: written by a task attempt, named by what it will be called once published."""

    sink: str
    path: str
    name: str
    rows: int
    size_bytes: int


class Changes(Enum):
    """What an output makes of rows that change or are taken back. They come with a last column `row_kind`."""

    REFUSED = "refused"
    """It only adds rows, so such rows do not get there."""
    SHOWN = "shown"
    """The column is shown like any other."""
    APPLIED = "applied"
    """The rows that it holds are changed."""


class Sink(ABC):
    """An output that gets the rows of each epoch after the epoch is committed, and can be told the same epoch twice."""

    guarantee: Guarantee = Guarantee.AT_LEAST_ONCE
    """What publishing an epoch again does: nothing (exactly once), the same over again (effectively), or more rows."""
    outlives_process: bool = True
    """Whether what was published is still there when the driver's process is gone."""
    extension: str = "arrow"
    """The ending of staged and published files."""
    changes: Changes = Changes.REFUSED
    """What it makes of a changelog."""
    output: str | None = None
    """Where it writes, in words, if no other sink of a job may write there."""
    upsert_key: tuple[str, ...] = ()
    """Of an output to which changes are applied: the columns by which it finds the row that a row replaces."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.describe()})"

    @abstractmethod
    def describe(self) -> str:
        """What this is, in a few words, without secrets."""

    def staging_folder(self, outbox: Path) -> Path:
        """Where tasks write; must be on the file system that `publish` renames within."""
        return outbox

    def stage(self, table: pa.Table, path: Path) -> None:
        """Write a table to a new file, in a task; by default as an Arrow stream."""
        with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, table.schema) as writer:
            writer.write_table(table)

    def stage_all(self, table: pa.Table, path: Path, name: str) -> Iterator[tuple[Path, str, int]]:
        """Write a task's rows, to be published as `name`: of each file, where it is, its name and how many rows it has.

        By default that is one file. More of them are beside `path`, and their names begin as its does.
        """
        self.stage(table, path)
        yield path, name, len(table)

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:  # noqa: B027  most outputs have no owner
        """Called before any `open` for a job that goes on from a savepoint: the output of `before` becomes this one's.

        What that job published up to the savepoint's epoch stays. An output that knows its owner refuses when the owner
        is neither that job nor another one that goes on from the same savepoint, or when it has rows of a later epoch:
        those would come again. From then on it refuses the job it belonged to. May be called again by another process.
        """

    @abstractmethod
    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        """Called in the driver before the first epoch of a run; refuses an output that belongs to another run."""

    @abstractmethod
    def publish(self, epoch: int, files: list[Staged]) -> None:
        """Make the epoch's rows visible, in the order of the files; called in the order of epochs."""

    def at_epoch(self, now_ms: int, *, ended: bool) -> None:  # noqa: B027  rows alone say enough to most outputs
        """Called before `publish`: the processing time of its epoch, and whether the input ends with it."""

    def flush(self) -> None:  # noqa: B027  most outputs hold nothing back
        """Called when a job has come to an orderly end: what is published and out of sight is to be seen now."""

    def close(self) -> None:  # noqa: B027  most outputs hold nothing open
        """Called in the driver when a run is over, however it ended: let go of connections. It may be opened again."""


def read_staged(file: Staged) -> pa.Table:
    """The rows of a file staged by the default `Sink.stage`."""
    with pa.memory_map(file.path) as source:
        return pa.ipc.open_stream(source).read_all()
