"""DataFrames of Spark at both ends of a job. Nothing here imports Spark: it is handed in, and handed on.

In: the micro-batches of a DataFrame are put down in the folder of the source, by a query that the engine runs beside the
job, and read from there, so that an epoch is computed again from the same rows. Out: the rows of each epoch are
given to a function of the user's as a DataFrame, after the epoch is committed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headwater.connectors.batches import Batches
from headwater.connectors.contract import Guarantee, Positions, Sink, Source, Staged
from headwater.connectors.hidden import without_user
from headwater.data.schema import Schema, parse_type
from headwater.durable import write_atomically
from headwater.errors import GraphError, SchemaError, SourceError

LOG = logging.getLogger("headwater.dataframes")
MAX_BATCHES_AHEAD = 32
"""How many micro-batches a DataFrame may be ahead of the job; then it waits."""
_SPLITS = "splits"
"""The file that says how many splits share each batch: positions of another number of splits mean something else."""


class _InDriver:
    """Something that stays in the driver's process: elsewhere it is None."""

    def __init__(self, it: Any = None) -> None:
        self.it = it

    def __reduce__(self) -> tuple[object, ...]:
        return (_InDriver, ())


class DataFrameSource(Source):
    """Reads the batches that were put down: each position is a micro-batch, and splits share the parts of each."""

    def __init__(self, frame: Any, splits: int) -> None:
        if splits < 1:
            raise GraphError.bad_argument("from_dataframe", "needs at least one split", splits, "give splits=1 or more")
        self.bounded = not frame.isStreaming
        self._frame, self._splits = _InDriver(frame), splits
        self.schema = schema_of(frame.schema.jsonValue())
        self._folder: Path | None = None
        self._opened: Batches | None = None
        self._taken: deque[int] = deque()
        """Of the newest epochs that are published, up to where they read."""
        self._removed_before = 0

    @property
    def frame(self) -> Any:
        """The DataFrame, in the driver."""
        return self._frame.it

    @property
    def folder(self) -> Path:
        """Where the source keeps its batches, and Spark the checkpoint of the query that puts them down."""
        assert self._folder is not None
        return self._folder

    @property
    def batches(self) -> Batches:
        """The batches that there are."""
        if self._opened is None:
            self._opened = Batches(self.folder)
        return self._opened

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}

    def describe(self) -> str:
        return "DataFrame" if self.bounded else "streaming DataFrame"

    def remember_in(self, folder: Path) -> None:
        self._folder, self._opened = folder, None
        file = folder / _SPLITS
        if not file.exists():
            write_atomically(file, str(self._splits).encode())
        elif file.read_text() != str(self._splits):
            raise SourceError.unreadable(
                str(folder),
                f"its batches are shared by {file.read_text()} splits, the source has {self._splits}",
                f"give from_dataframe splits={file.read_text()}, or another name to read everything anew",
            )

    def needed(self, folder: Path, positions: Positions) -> Iterator[Path]:
        """First what the query has committed, then what it wrote before, so that nothing is committed and not there."""
        from headwater.spark import checkpoint_files

        query, first = query_folder(folder), min(positions.values(), default=0)
        yield from folder.glob(_SPLITS)
        yield from checkpoint_files.committed(query)
        yield from Batches(folder).needed_from(first)
        yield from checkpoint_files.planned(query)

    def check(self, schema: Schema) -> None:
        """The schema is the DataFrame's own."""

    def earliest(self) -> Positions:
        return {str(split): 0 for split in range(self._splits)}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return dict.fromkeys(self.earliest(), 1 if self.bounded else self.batches.count())

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        for number in range(start, end):
            for batch in self.batches.read(number, slice(int(split), None, self._splits)):
                if not batch.schema.equals(self.schema.arrow):
                    found = Schema.of(batch.schema).ddl()
                    raise SourceError.schema_mismatch(f"DataFrame, batch {number}", self.schema.ddl(), found)
                yield batch

    def retain(self, checkpoints: int) -> None:
        """Keep what so many of the newest checkpoints may have to read again."""
        self._taken = deque([self.batches.count()], maxlen=checkpoints + 2)

    def published(self, positions: Positions) -> None:
        if self._taken.maxlen is None:  # an epoch of the last run, before this one puts anything down
            return
        self._taken.append(min(positions.values(), default=self._taken[-1]))
        if len(self._taken) < (self._taken.maxlen or 0) or self._taken[0] == self._removed_before:
            return
        try:
            self.batches.remove_before(self._taken[0])
            self._removed_before = self._taken[0]
        except OSError as error:
            LOG.warning("batches in %s that nobody needs could not be removed: %s", self._folder, error)

    def has_room(self, batch: int) -> bool:
        """Whether a batch may be put down, or the job is to read first."""
        return batch - self._taken[-1] < MAX_BATCHES_AHEAD


def query_folder(folder: Path) -> Path:
    """Where Spark keeps the checkpoint of the query that puts batches down."""
    return folder / "query"


def schema_of(struct: dict[str, Any]) -> Schema:
    """The schema of rows out of that of a DataFrame, as JSON; a type that rows cannot have is named with its column."""
    fields = []
    for field in struct["fields"]:
        try:
            fields.append(pa.field(field["name"], _type(field["type"]), field["nullable"]))
        except SchemaError as error:
            raise SchemaError.of_column(field["name"], " of the DataFrame", error) from None
    return Schema.of(pa.schema(fields))


def _type(given: str | dict[str, Any]) -> pa.DataType:
    if isinstance(given, str):
        return parse_type(given)
    if given["type"] == "array":
        return pa.list_(_type(given["elementType"]))
    if given["type"] == "map":
        return pa.map_(_type(given["keyType"]), _type(given["valueType"]))
    if given["type"] == "struct":
        return pa.struct([pa.field(one["name"], _type(one["type"]), one["nullable"]) for one in given["fields"]])
    raise SchemaError.unsupported_type(
        str(given["type"]), ["what spark.createDataFrame gives without classes of one's own"]
    )


class DataFrameSink(Sink):
    """Gives the rows of each epoch that has some to a function, as a DataFrame."""

    extension = "parquet"

    def __init__(self, write: Callable[[Any, int], None], *, idempotent: bool) -> None:
        self.guarantee = Guarantee.EFFECTIVELY_ONCE if idempotent else Guarantee.AT_LEAST_ONCE
        self._write, self._session = _InDriver(write), _InDriver()
        self._ddl = ""

    def describe(self) -> str:
        return f"DataFrames for {getattr(self._write.it, '__name__', type(self._write.it).__name__)}"

    def use(self, session: Any) -> None:
        """Called by the engine before `open`: the session in which the DataFrames are."""
        self._session = _InDriver(session)

    def stage(self, table: pa.Table, path: Path) -> None:
        pq.write_table(table, path)

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        if self._session.it is None:
            raise GraphError.bad_argument(
                uid, "gives DataFrames, which are Spark's", "engine='local'", "run it on Spark"
            )
        for field in schema.arrow:
            if pa.types.is_null(field.type):
                raise GraphError.bad_argument(
                    uid, f"has no DataFrame for the void field {field.name!r}", schema.ddl(), "leave it out"
                )
        self._ddl = schema.ddl()

    def publish(self, epoch: int, files: list[Staged]) -> None:
        if files:
            self._write.it(self._session.it.read.schema(self._ddl).parquet(*(file.path for file in files)), epoch)


class DeltaSink(DataFrameSink):
    """Appends each epoch to a Delta table, which remembers the last epoch of each job and takes none twice."""

    def __init__(self, path: str) -> None:
        super().__init__(self._append, idempotent=True)
        self.guarantee = Guarantee.EXACTLY_ONCE
        self._path, self._writer = path, ""

    def describe(self) -> str:
        return f"Delta table {without_user(self._path)}"

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        super().open(uid, job_id, schema, resumed=resumed)
        self._writer = f"{job_id}/{uid}"

    def _append(self, frame: Any, epoch: int) -> None:
        writer = frame.write.format("delta").mode("append")
        writer.option("txnAppId", self._writer).option("txnVersion", epoch).save(self._path)
