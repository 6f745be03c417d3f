"""Files out: Parquet, JSON lines or CSV in a folder in which every visible row is committed.

Tasks write below `_headwater/`, which readers of folders pass over; a committed file is renamed into the folder under a
name made of sink, epoch and place of origin. `_headwater/manifest.jsonl` lists the published files epoch by epoch. With
limits for rolling, a committed file waits below `_headwater/` until it is merged with others into one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from headwater.connectors.contract import Guarantee, Sink, Staged
from headwater.connectors.errors import NotWritable
from headwater.connectors.files.partitions import Partitions
from headwater.connectors.files.rolling import Held, Limits, concatenated, damage_told
from headwater.connectors.formats.json_text import json_rows
from headwater.data.schema import Schema
from headwater.durable import append_line, one_at_a_time, sync_folder
from headwater.errors import GraphError, PublishError
from headwater.stored_paths import below
from headwater.versioned import Versioned

_MOST_PATH_BYTES = 4095
"""What Linux takes as a path."""
_EXTENSIONS = {"parquet": "parquet", "json": "jsonl", "csv": "csv"}


@dataclass(frozen=True)
class _Owner(Versioned):
    """The job and sink that a folder belongs to, and the savepoint it was handed over at, if it was."""

    job: str
    sink: str
    before: str | None = None
    """The job whose output it was."""
    epoch: int | None = None
    """The last of that job's epochs that counts."""

    @property
    def after(self) -> tuple[str, str | None, int | None]:
        return self.sink, self.before, self.epoch

    def is_same(self, other: _Owner) -> bool:
        return (self.job, self.sink) == (other.job, other.sink)

    def __str__(self) -> str:
        return f"sink {self.sink!r} of job {self.job}"


class FilesSink(Sink):
    """Publishes by rename; the presence of the final file is the mark that it was published."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(
        self,
        folder: str | os.PathLike[str],
        format: str = "parquet",  # noqa: A002  the name users expect
        *,
        partitions: Partitions | None = None,
        limits: Limits | None = None,
    ) -> None:
        if format not in _EXTENSIONS:
            raise GraphError.bad_argument("files", f"writes {', '.join(_EXTENSIONS)}", format, "choose one of them")
        self.folder = Path(folder).absolute()
        if file := next((path for path in (self.folder, *self.folder.parents) if path.is_file()), None):
            raise GraphError.bad_argument("files", "writes into a folder", str(file), "that is a file: name a folder")
        self.output = f"the folder {self.folder.resolve()}"
        self.format = format
        self.extension = _EXTENSIONS[format]
        self._partitions, self._limits = partitions or Partitions(()), limits or Limits(None, None)
        self._held: Held | None = None
        if limits is not None:
            self._held = Held(self.folder, limits, self.extension, self._merge, self._record)
        self._now_ms, self._ended = 0, False
        self._uid = ""
        self._mine = _Owner("", "")

    def describe(self) -> str:
        return f"{self.format} files in {self.folder}"

    def staging_folder(self, outbox: Path) -> Path:
        return self.folder / "_headwater" / "staging"

    def stage(self, table: pa.Table, path: Path) -> None:
        if self.format == "parquet":
            text = [
                field.name for field in table.schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
            ]
            pq.write_table(table, path, compression="zstd", use_dictionary=text)  # numbers seldom repeat enough
        elif self.format == "csv":
            pa_csv.write_csv(_flat(table), path)
        else:
            with path.open("w", encoding="utf-8") as out:
                for row in json_rows(table):
                    out.write(row + "\n")

    def stage_all(self, table: pa.Table, path: Path, name: str) -> Iterator[tuple[Path, str, int]]:
        number, writing = 0, path.with_name(f"{path.stem}-writing{path.suffix}")
        for folder, rows in self._partitions.deal(table):
            for piece in self._pieces(rows, writing):
                beside, called = _numbered(path, number), _numbered(Path(folder + name), number).as_posix()
                self._check_path(called)
                writing.rename(beside)
                yield beside, called, len(piece)
                number += 1

    def _check_path(self, called: str) -> None:
        """Refuse a name that is too long where it will be, and where it may be held until then."""
        size_bytes = len(os.fsencode(self.folder / "_headwater" / "held" / called))
        if size_bytes > _MOST_PATH_BYTES:
            raise NotWritable.no_folder(
                ", ".join(self._partitions.columns),
                called,
                f"the path would have {size_bytes} bytes, and {_MOST_PATH_BYTES} is the most",
            )

    def _pieces(self, rows: pa.Table, path: Path) -> Iterator[pa.Table]:
        """Each piece that fits a file, when it is in the file; how small rows become is known when they are written."""
        self.stage(rows, path)
        most, size_bytes = self._limits.size_bytes, path.stat().st_size
        if most is None or size_bytes <= most:
            yield rows
            return
        count = max(1, len(rows) * most // size_bytes)
        for start in range(0, len(rows), count):
            piece = rows.slice(start, count)
            self.stage(piece, path)
            yield piece

    def _merge(self, files: Sequence[Path], to: Path) -> None:
        """Rows in the order of files as one file; a reader of a whole dataset would add columns of the path."""
        if self.format != "parquet":
            concatenated(files, to, header=self.format == "csv")
            return
        tables = []
        for path in files:
            with pq.ParquetFile(path) as source:
                tables.append(source.read())
        self.stage(pa.concat_tables(tables), to)

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        self._be(uid)
        self._partitions.check(uid, schema)
        if self.format == "csv":
            for field in schema.arrow:
                if pa.types.is_nested(field.type):
                    raise GraphError.bad_argument(
                        uid,
                        f"cannot write the nested field {field.name!r} as CSV",
                        str(field.type),
                        "use parquet or json",
                    )
        with self._alone():
            owner = self._owner()
            self._mine = _Owner(job_id, uid)
            if owner is None:
                self._refuse_foreign_files()
                self._own(self._mine)
            elif not owner.is_same(self._mine):
                raise self._refused(owner)
            elif not resumed and self._manifest().exists():
                raise self._of_another_job(str(owner), f"{job_id}, starting anew")
            if self._held is not None:
                self._held.open()

    def _refuse_foreign_files(self) -> None:
        """Whoever reads the folder would take files of others for output."""
        below = "**/" if self._partitions.columns else ""
        hidden = self.folder / "_headwater"
        found = (path for path in self.folder.glob(f"{below}*.{self.extension}") if hidden not in path.parents)
        if (first := min(found, default=None)) is not None:
            name = first.relative_to(self.folder)
            raise PublishError.foreign_files(self._uid, f"folder {self.folder}", str(name))

    def _be(self, uid: str) -> None:
        self._uid = uid
        if self._held is not None:
            self._held.uid = uid

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        with self._alone():
            owner = self._owner()
            self._be(uid)
            self._mine = _Owner(job_id, uid, before, epoch)
            if owner is not None:
                if owner.is_same(self._mine):
                    return
                if not owner.is_same(_Owner(before, uid)) and owner.after != self._mine.after:
                    raise self._refused(owner)
            if self._held is not None:
                self._held.give_up_after(epoch)
            later = sorted(path.name for path in self._published(uid) if _epoch_of(path.name, uid) > epoch)
            if later:
                found, action = (
                    f"{later[0]} is the first such file",
                    "write to another folder, or remove those files first",
                )
                raise PublishError.published_after(uid, f"folder {self.folder}", epoch, found, action)
            self._own(self._mine)

    def _published(self, uid: str) -> Iterator[Path]:
        below = "**/" if self._partitions.columns else ""
        hidden = self.folder / "_headwater"
        return (path for path in self.folder.glob(f"{below}{uid}-*") if hidden not in path.parents)

    def at_epoch(self, now_ms: int, *, ended: bool) -> None:
        self._now_ms, self._ended = now_ms, ended

    def flush(self) -> None:
        if self._held is not None:
            with self._alone():
                self._check_owner()
                self._held.roll_all()

    def _check_owner(self) -> None:
        owner = self._owner()
        if owner is None or not owner.is_same(self._mine):
            raise self._refused(owner)

    def publish(self, epoch: int, files: list[Staged]) -> None:
        if self._held is not None:
            with self._alone():
                self._check_owner()
                self._held.take(epoch, self._now_ms, files, ended=self._ended)
            return
        if not files:
            return
        with self._alone():
            self._check_owner()
            named = [(file, below(self.folder, file.name, f"epoch {epoch}")) for file in files]
            for file, final in named:
                if final.exists():
                    continue
                final.parent.mkdir(parents=True, exist_ok=True)
                try:
                    Path(file.path).rename(final)
                except FileNotFoundError:
                    raise PublishError.staged_file_missing(self._uid, file.path) from None
            for folder in sorted({final.parent for _, final in named}):
                sync_folder(folder)
            self._record(epoch, files)

    def _alone(self) -> AbstractContextManager[None]:
        """Whoever looks at the owner and then acts on it does both before anybody else does."""
        folder = self.folder / "_headwater"
        folder.mkdir(parents=True, exist_ok=True)
        return one_at_a_time(folder / "lock")

    def _owner(self) -> _Owner | None:
        with damage_told(self._uid, self.folder):
            return _Owner.read_if_there(self.folder / "_headwater" / "owner.json")

    def _own(self, owner: _Owner) -> None:
        owner.write(self.folder / "_headwater" / "owner.json")

    def _refused(self, owner: _Owner | None) -> PublishError:
        if owner is not None and owner.before == self._mine.job:
            return PublishError.handed_over(self._uid, f"folder {self.folder}", owner.epoch or 0, owner.job)
        return self._of_another_job(str(owner or "it has lost its owner"), self._mine.job)

    def _of_another_job(self, owner: str, mine: str) -> PublishError:
        return PublishError.output_of_another_job(
            self._uid, f"folder {self.folder}", owner, mine, "use an empty folder"
        )

    def _record(self, epoch: int, files: list[Staged]) -> None:
        entry = {"epoch": epoch, "files": [{"name": f.name, "rows": f.rows, "bytes": f.size_bytes} for f in files]}
        line = json.dumps(entry, sort_keys=True)
        if line not in _lines_from_end(self._manifest()):
            append_line(self._manifest(), line)

    def _manifest(self) -> Path:
        return self.folder / "_headwater" / "manifest.jsonl"


def _numbered(path: Path, number: int) -> Path:
    """A name for each of several files; the first is called as if it was alone."""
    return path.with_name(f"{path.stem}-{number:04d}{path.suffix}") if number else path


def _epoch_of(name: str, uid: str) -> int:
    """The epoch in the name of a published file; -1 for another file."""
    digits = name.removeprefix(f"{uid}-")[:10]
    return int(digits) if digits.isdigit() else -1


def _lines_from_end(path: Path, tail_bytes: int = 1 << 16) -> list[str]:
    """The last whole lines of a file; enough to see whether the newest epoch is recorded."""
    if not path.exists():
        return []
    with path.open("rb") as source:
        source.seek(max(0, path.stat().st_size - tail_bytes))
        return source.read().decode(errors="replace").splitlines()


def _flat(table: pa.Table) -> pa.Table:
    columns = [pc.cast(c, pa.string()) if pa.types.is_duration(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)
