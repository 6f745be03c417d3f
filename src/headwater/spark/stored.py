"""A committed epoch, read back from Spark's state store and offset log while the query runs or after it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.epoch.offset import Offset
from headwater.errors import ChangelogError, JobError
from headwater.job.checkpoints.listing import Checkpoints
from headwater.job.checkpoints.stored import Damage
from headwater.job.reading import JobReader
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.taking import Part, write_part
from headwater.spark.checkpoint_files import CheckpointFiles
from headwater.spark.failures import found_in, marked, reason_in
from headwater.spark.records import HEAD, VARIABLE, ReadRecords, as_bytes, first_number
from headwater.spark.session import location
from headwater.spark.worker import local_dir
from headwater.state.changelog import Head, catch_up
from headwater.task import garbage_collection
from headwater.task.closing import close_all
from headwater.task.host import LevelHost

V = TypeVar("V")
_REPORT = "report string"
_ESCAPED = set(' "#%<>?[\\]^`{|}')
"""What may be in a path and not in a URI."""
_KEPT_BYTES = 64 << 20
"""What the driver keeps of a level between two looks; as Python objects it is several times as much."""


@dataclass(frozen=True)
class StoredEpoch:
    """The state and the offset of one of Spark's batches."""

    spark: SparkSession
    checkpoint: Path
    batch: int

    def offset(self) -> Offset:
        """Where the job stood after the batch."""
        try:
            return CheckpointFiles(self.checkpoint).offset(self.batch)
        except Damage as damage:
            raise JobError.corrupt(str(damage.path), damage.problem) from None

    def write_parts(self, plan: JobPlan, folder: Path) -> Iterator[Part]:
        """Write the state of every subtask into a savepoint's folder, in half as many tasks: the job's epochs need room."""
        for level in range(1, plan.depth + 1):
            try:
                with self._records(level, plan.depth) as records:
                    some = records.coalesce(max(1, plan.parallelism // 2))
                    written = some.mapInArrow(_Writer(plan, level, str(folder)), _REPORT).collect()
            except (ChangelogError, JobError) as error:
                raise SavepointError.failed(folder, str(error)) from error
            yield from (Part.from_json(json.loads(row.report)) for row in written)

    def level(self, plan: JobPlan, level: int, known: Sequence[LevelHost] = ()) -> Level:
        """The subtasks of a level as they were, in this process. Hosts that are known, and behind, are brought up to date."""
        since = min((first_number(host.sequence) for host in known), default=HEAD)
        found: dict[int, dict[int, bytes | memoryview]] = {subtask: {} for subtask in range(plan.parallelism)}
        hosts = list(known)
        with ExitStack() as failed:
            failed.callback(lambda: close_all(hosts))
            with self._records(level, plan.depth) as stored:
                for row in stored.where(f"number = {HEAD} or number >= {since}").toLocalIterator():
                    found[row.subtask][row.number] = as_bytes(row.number, row.data)
            records = [ReadRecords(pieces) for pieces in found.values()]
            if hosts and not all(map(_is_behind, hosts, records)):
                return self.level(plan, level)
            if not hosts:
                hosts += [LevelHost(plan, level, subtask, local_dir=local_dir()) for subtask in found]
            heads = [
                _caught_up(host, one, level, subtask)
                for subtask, (host, one) in enumerate(zip(hosts, records, strict=True))
            ]
            failed.pop_all()
        return Level(hosts, sum(head.base_bytes + head.delta_bytes for head in heads))

    @contextmanager
    def _records(self, level: int, depth: int) -> Iterator[DataFrame]:
        """The pieces of all records of a level. Spark counts stateful steps from the last one, and partitions are subtasks.

        What it raises while they are read leaves as an error of ours: a task's, what is damaged, or what Spark says.
        """
        try:
            with _without_escapes(self.checkpoint) as checkpoint:
                stored = (
                    self.spark.read.format("statestore")
                    .option("path", location(checkpoint))
                    .option("batchId", self.batch)
                    .option("operatorId", depth - level)
                    .option("stateVarName", VARIABLE)
                    .load()
                )
                yield stored.selectExpr(
                    "partition_id as subtask", "user_map_key.number as number", "user_map_value.data as data"
                )
        except Exception as error:
            found = found_in(error)
            if found is not None:
                raise found from None
            job_dir = self.checkpoint.parent
            Checkpoints(job_dir).check(self.batch + JobReader(job_dir).identity.first_epoch)
            raise JobError.corrupt(str(self.checkpoint), reason_in(error)) from None


@contextmanager
def _without_escapes(folder: Path) -> Iterator[Path]:
    """The folder, by a name that Spark's reader of state can find: it escapes the name once too often."""
    if not _ESCAPED & set(str(folder)):
        yield folder
        return
    with TemporaryDirectory(prefix="headwater-state-") as plain:
        link = Path(plain) / folder.name
        link.symlink_to(folder)
        yield link


@dataclass(frozen=True)
class _Writer:
    """Gets the pieces of one subtask after the other and writes its state."""

    plan: JobPlan
    level: int
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marked(), garbage_collection.worker_task():
            pieces = (row for batch in batches for row in batch.to_pylist())
            for subtask, its_pieces in groupby(pieces, key=itemgetter("subtask")):
                records = {piece["number"]: as_bytes(piece["number"], piece["data"]) for piece in its_pieces}
                with closing(LevelHost(self.plan, self.level, subtask, local_dir=local_dir())) as host:
                    _caught_up(host, ReadRecords(records), self.level, subtask)
                    part = write_part(host, self.plan, subtask, Path(self.folder))
                yield pa.RecordBatch.from_pydict({"report": [json.dumps(part.to_json())]})


@dataclass(frozen=True)
class Level:
    """All subtasks of a level at an epoch."""

    hosts: list[LevelHost]
    size_bytes: int
    """What is stored of them."""

    def close(self) -> None:
        """Give the hosts up."""
        close_all(self.hosts)


class LastLook:
    """The level whose state was looked at last, so that the next look at it reads only what changed since."""

    def __init__(self) -> None:
        self._level: int | None = None
        self._hosts: list[LevelHost] = []
        self._lock = threading.Lock()

    def at(self, stored: StoredEpoch, plan: JobPlan, level: int, view: Callable[[list[LevelHost]], V]) -> V:
        """What `view` makes of the level at the newest epoch."""
        with self._lock:
            known, self._hosts = self._hosts, []
            if level != self._level:
                close_all(known)
                self._level, known = level, []
            found = stored.level(plan, level, known)
            if found.size_bytes <= _KEPT_BYTES:
                self._hosts = found.hosts
                return view(found.hosts)
            with closing(found):
                return view(found.hosts)


def _is_behind(host: LevelHost, records: ReadRecords) -> bool:
    """Whether a host can go on from the records since its own: they are of its history."""
    head = records.head()
    return head is not None and (head.base > host.sequence or records.token(host.sequence) == host.token)


def _caught_up(host: LevelHost, records: ReadRecords, level: int, subtask: int) -> Head:
    where = f"level {level}, subtask {subtask}"
    head = catch_up(host, records, where)
    if head is None:
        raise ChangelogError.bad_blob(f"{where} has none")
    return head
