"""A committed epoch, read back from Spark's state store and offset log while the query runs or after it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headwater.errors import ChangelogError, JobError
from headwater.plan.levels import JobPlan
from headwater.runtime import collector
from headwater.runtime.checkpoints.listing import Checkpoints
from headwater.runtime.checkpoints.note import JobNote
from headwater.runtime.host import LevelHost
from headwater.runtime.saved.errors import SavepointError
from headwater.runtime.saved.taking import Part, write_part
from headwater.spark.failures import found_in, marked, reason_in
from headwater.spark.records import VARIABLE, ReadRecords
from headwater.spark.shipped import ShippedJob, local_dir
from headwater.state.changelog import catch_up

_REPORT = "report string"


@dataclass(frozen=True)
class StoredEpoch:
    """The state and the offset of one of Spark's batches."""

    spark: SparkSession
    checkpoint: Path
    batch: int

    def offset(self) -> dict[str, Any]:
        """Where the job stood after the batch; the last line of Spark's log of it is our source's offset."""
        file = self.checkpoint / "offsets" / str(self.batch)
        try:
            offset: dict[str, Any] = json.loads(file.read_text().splitlines()[-1])
            if "positions" not in offset:
                raise ValueError("it is not the offset of a job")
        except (OSError, ValueError, IndexError) as error:
            raise JobError.corrupt(str(file), str(error)) from None
        return offset

    def write_parts(self, job: ShippedJob, folder: Path) -> Iterator[Part]:
        """Write the state of every subtask into a savepoint's folder, in half as many tasks: the job's epochs need room."""
        depth = job.plan().depth
        for level in range(1, depth + 1):
            try:
                with self._read():
                    records = self._records(level, depth).coalesce(max(1, job.parallelism // 2))
                    written = records.mapInArrow(_Writer(job, level, str(folder)), _REPORT).collect()
            except (ChangelogError, JobError) as error:
                raise SavepointError.failed(folder, str(error)) from error
            yield from (Part.from_json(json.loads(row.report)) for row in written)

    @contextmanager
    def hosts(self, plan: JobPlan, level: int) -> Iterator[list[LevelHost]]:
        """The subtasks of a level as they were, in this process, to be looked at."""
        found: dict[int, dict[int, bytes]] = {subtask: {} for subtask in range(plan.parallelism)}
        with self._read():
            for row in self._records(level, plan.depth).toLocalIterator():
                found[row.subtask][row.number] = bytes(row.data)
        with ExitStack() as opened:
            yield [opened.enter_context(_host(plan, level, subtask, records)) for subtask, records in found.items()]

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Let what Spark raises while it reads leave as an error of ours: a task's, what is damaged, or what Spark says."""
        try:
            yield
        except Exception as error:
            found = found_in(error)
            if found is not None:
                raise found from error
            job_dir = self.checkpoint.parent
            Checkpoints(job_dir).check(self.batch + JobNote.read(job_dir).first_epoch)
            raise JobError.corrupt(str(self.checkpoint), reason_in(error)) from error

    def _records(self, level: int, depth: int) -> DataFrame:
        """The pieces of all records of a level. Spark counts stateful steps from the last one, and partitions are subtasks."""
        stored = (
            self.spark.read.format("statestore")
            .option("path", self.checkpoint.as_uri())
            .option("batchId", self.batch)
            .option("operatorId", depth - level)
            .option("stateVarName", VARIABLE)
            .load()
        )
        return stored.selectExpr(
            "partition_id as subtask", "user_map_key.number as number", "user_map_value.data as data"
        )


@dataclass(frozen=True)
class _Writer:
    """Gets the pieces of one subtask after the other and writes its state."""

    job: ShippedJob
    level: int
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with marked(), collector.worker_task():
            pieces = (row for batch in batches for row in batch.to_pylist())
            for subtask, its_pieces in groupby(pieces, key=itemgetter("subtask")):
                records = {piece["number"]: piece["data"] for piece in its_pieces}
                plan = self.job.plan()
                with _host(plan, self.level, subtask, records) as host:
                    part = write_part(host, plan, subtask, Path(self.folder))
                yield pa.RecordBatch.from_pydict({"report": [json.dumps(part.to_json())]})


@contextmanager
def _host(plan: JobPlan, level: int, subtask: int, records: dict[int, bytes]) -> Iterator[LevelHost]:
    where = f"level {level}, subtask {subtask}"
    with closing(LevelHost(plan, level, subtask, local_dir=local_dir())) as host:
        if catch_up(host, ReadRecords(records), where) is None:
            raise ChangelogError.bad_blob(f"{where} has none")
        yield host
