"""Files in: Parquet, JSON lines or CSV that come into a folder, each read once and whole.

A file gets a number when it is found, in a ledger that the job keeps. Its number says which split it belongs to and at
which position, so what was read is read again in the same order, whatever has come since.
"""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import DeadLetters, Positions, Source
from headwater.connectors.files.formats import READERS
from headwater.connectors.files.ledger import FoundFile, Ledger
from headwater.connectors.files.lookout import Lookout
from headwater.connectors.files.unpacked import Unpacked
from headwater.data.schema import Schema
from headwater.durable import one_at_a_time
from headwater.errors import GraphError, SourceError

_LEDGER = "files.jsonl"
BAD_RECORDS = ("fail", "dead_letters")
_METADATA: dict[str, tuple[pa.DataType, Callable[[FoundFile], object]]] = {
    "path": (pa.string(), lambda file: file.path),
    "size_bytes": (pa.int64(), lambda file: file.size_bytes),
    "modified": (
        pa.timestamp("us", "UTC"),
        lambda file: dt.datetime.fromtimestamp(0, dt.UTC) + dt.timedelta(microseconds=file.modified_ns // 1000),
    ),
}
"""What can be told of a file beside its rows."""


class FilesSource(Source):
    """Reads each file of a folder once; position p of split s is file p * splits + s of the ledger."""

    finds_columns_by_name = True

    def __init__(
        self,
        lookout: Lookout,
        format: str,  # noqa: A002  the name users expect
        *,
        watch: bool,
        splits: int,
        max_files_per_epoch: int,
        bad_records: str,
        metadata: Mapping[str, str],
        max_unpacked_bytes: int,
    ) -> None:
        for what, given, known in (
            ("reads", format, tuple(READERS)),
            ("takes bad_records=", bad_records, BAD_RECORDS),
            *(("tells of a file its", fact, tuple(_METADATA)) for fact in metadata.values()),
        ):
            if given not in known:
                raise GraphError.bad_argument("read_files", f"{what} {', '.join(known)}", given, "choose one of them")
        if (least := min(splits, max_files_per_epoch, max_unpacked_bytes)) < 1:
            raise GraphError.bad_argument(
                "read_files", "needs a split, a file in an epoch, and bytes in a file", least, "give 1 or more"
            )
        self.bounded, self.has_dead_letters = not watch, bad_records == "dead_letters"
        self.max_positions_per_epoch, self._max_unpacked_bytes = max_files_per_epoch, max_unpacked_bytes
        self._lookout, self._format, self._splits, self._metadata = lookout, format, splits, dict(metadata)
        self._schema: Schema | None = None
        self._folder: Path | None = None
        self._forget()

    def _forget(self) -> None:
        """What a process knows of the ledger, it reads itself: one that adds to it all paths, one that reads files none."""
        self._added_to: Ledger | None = None
        self._known: set[str] = set()
        self._read_from: Ledger | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_added_to": None, "_known": set(), "_read_from": None}

    def describe(self) -> str:
        return f"{self._format} files in {self._lookout.folder}"

    def remember_in(self, folder: Path) -> None:
        self._folder = folder
        self._forget()

    def needed(self, folder: Path, positions: Positions) -> Iterator[Path]:
        yield from folder.glob(_LEDGER)

    def check(self, schema: Schema) -> None:
        self._schema = schema
        for column, fact in self._metadata.items():
            if not schema.field(column).type.equals(_METADATA[fact][0]):
                needs = f"puts the {fact} of a file into a {Schema.of(pa.schema([(column, _METADATA[fact][0])])).ddl()}"
                raise GraphError.bad_argument("read_files", needs, schema.ddl(), "change the schema")
        if not self._of_files().names:
            raise GraphError.bad_argument("read_files", "needs a column of the files", schema.ddl(), "add one")
        for field in self._of_files().arrow:
            if self._format == "csv" and pa.types.is_nested(field.type):
                needs = f"cannot read the nested field {field.name!r} from CSV"
                raise GraphError.bad_argument("read_files", needs, str(field.type), "use parquet or json")
            if self._format == "json" and pa.types.is_duration(field.type):
                needs = f"cannot read the interval {field.name!r} from JSON, which has no form for it"
                raise GraphError.bad_argument("read_files", needs, str(field.type), "declare it as text or a number")
        if not self._lookout.folder.is_dir():
            raise SourceError.unreadable(self.describe(), "there is no such folder", "make it, or name another one")

    def can_read(self, schema: Schema) -> bool:
        return {*schema.names} > {*self._metadata}

    def _of_files(self) -> Schema:
        """The columns that are in the files."""
        assert self._schema is not None
        return Schema(pa.schema([field for field in self._schema.arrow if field.name not in self._metadata]))

    def earliest(self) -> Positions:
        return {str(split): 0 for split in range(self._splits)}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        assert self._folder is not None
        ledger = self._added_to = self._added_to or self._ledger()
        with one_at_a_time(self._folder / "lock"):
            self._known.update(file.path for file in ledger.catch_up())
            if not ledger.is_closed:
                self._look(ledger, self._folder / "clock")
        return {str(split): len(range(split, len(ledger), self._splits)) for split in range(self._splits)}

    def _look(self, ledger: Ledger, probe: Path) -> None:
        """Give new files their numbers. At the very first look, those that were just written are waited for."""
        look = self._lookout.look(self._known, probe)
        if look.unsettled and not ledger.is_begun:
            self._lookout.wait()
            look = self._lookout.look(self._known, probe)
        if self.bounded and look.unsettled:
            path = f"{self._lookout.folder}/{look.unsettled[0].path}"
            raise SourceError.unreadable(path, "it is still being written", "start the job when all is there")
        ledger.add(look.settled, close=self.bounded)
        self._known.update(file.path for file in look.settled)

    def _ledger(self) -> Ledger:
        assert self._folder is not None
        return Ledger(self._folder / _LEDGER, self._splits)

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        ledger = self._read_from = self._read_from or self._ledger()
        for position in range(start, end):
            number = position * self._splits + int(split)
            file = ledger.file(number)
            try:
                rows = self._rows(file)
                yield from list(rows) if self.has_dead_letters else rows
            except (OSError, EOFError, ValueError, pa.ArrowException) as error:
                if not self.has_dead_letters:
                    raise SourceError.unreadable(
                        f"{self._lookout.folder}/{file.path}",
                        str(error),
                        "put the file back as it was, or set bad_records='dead_letters' to go on without it",
                    ) from None
                yield DeadLetters.of(self, split, number, str(error), os.fsencode(file.path))

    def whole(self, schema: Schema) -> pa.Table:
        """The rows of all files that are there now, by the names of the files."""
        self.check(schema)
        batches: list[pa.RecordBatch] = []
        for file in self._lookout.all():
            try:
                batches += self._rows(file)
            except (OSError, EOFError, ValueError, pa.ArrowException) as error:
                path = f"{self._lookout.folder}/{file.path}"
                raise SourceError.unreadable(path, str(error), "mend the file") from None
        return pa.Table.from_batches(batches, schema.arrow)

    def _rows(self, file: FoundFile) -> Iterator[pa.RecordBatch]:
        """The rows of a file that is still the one that got the number."""
        path = self._lookout.path(file)
        self._check_same(file, path)
        for batch in READERS[self._format](path, self._of_files().arrow, Unpacked(path, self._max_unpacked_bytes)):
            yield self._with_metadata(batch, file)
        self._check_same(file, path)

    @staticmethod
    def _check_same(file: FoundFile, path: Path) -> None:
        try:
            status = path.stat()
        except FileNotFoundError:
            raise ValueError("it was found and is gone, before it was read or when it is to be read again") from None
        if (status.st_size, status.st_mtime_ns) != (file.size_bytes, file.modified_ns):
            now = f"it has {status.st_size} bytes of {status.st_mtime_ns} ns"
            raise ValueError(
                f"it has changed since it was found: {now}, not {file.size_bytes} of {file.modified_ns} ns"
            )

    def _with_metadata(self, batch: pa.RecordBatch, file: FoundFile) -> pa.RecordBatch:
        assert self._schema is not None
        if not self._metadata:
            return batch
        columns = []
        for field in self._schema.arrow:
            if field.name in self._metadata:
                dtype, of = _METADATA[self._metadata[field.name]]
                columns.append(pa.repeat(pa.scalar(of(file), dtype), len(batch)))
            else:
                columns.append(batch.column(field.name))
        return pa.RecordBatch.from_arrays(columns, schema=self._schema.arrow)
