"""Batches that were put down: what came from outside once, kept as Arrow streams so that it can be read again as it was.

`batches/0000000007.json` names the files of batch 7 in their order, which are in the folder beside it. It is written last:
a batch is there when its list is. Batches have the numbers 0, 1, 2 and so on; the oldest may have been removed.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from headwater.durable import sync_folder, write_atomically
from headwater.errors import SourceError
from headwater.shapes import fits
from headwater.stored_paths import below


class Batches:
    """The batches in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "batches"
        self._count: int | None = None

    def count(self) -> int:
        """How many there are, with those that were removed. A process lists them once, and then looks for the next."""
        if self._count is None:
            self._count = max(self._listed(), default=-1) + 1
        while self.has(self._count):
            self._count += 1
        return self._count

    def has(self, number: int) -> bool:
        return self._list(number).exists()

    def put_part(self, number: int, part: int, rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> str:
        """Write one part of a batch, in a task; the name of its file, which is the attempt's own."""
        folder = self._files(number)
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{part:06d}-{uuid.uuid4().hex[:12]}.arrow"
        with (folder / name).open("wb") as out:
            with pa.ipc.new_stream(out, schema) as writer:
                for batch in rows:
                    writer.write_batch(_cast(batch, schema))
            out.flush()
            os.fsync(out.fileno())
        sync_folder(folder)
        return name

    def complete(self, number: int, names: Sequence[str]) -> None:
        """Name the parts of a batch, in their order, in the driver: from now on it is there, and stays as it is."""
        self._folder.mkdir(parents=True, exist_ok=True)
        write_atomically(self._list(number), json.dumps({"files": list(names)}).encode())

    def read(self, number: int, share: slice) -> Iterator[pa.RecordBatch]:
        """The rows of some of the parts of a batch."""
        try:
            names = json.loads(self._list(number).read_bytes())["files"]
            if not fits(names, list[str]):
                raise ValueError("its list of files is none")
            for name in names[share]:
                with pa.memory_map(str(below(self._files(number), name, self._list(number)))) as source:
                    yield from pa.ipc.open_stream(source)
        except (OSError, ValueError, LookupError, TypeError, RecursionError, pa.ArrowException) as error:
            raise SourceError.unreadable(
                f"batch {number} in {self._folder}",
                f"{error}",
                "batches are kept as long as retained checkpoints need them: go back no further than to one of these, or "
                "restore the job folder from a copy",
            ) from None

    def remove_before(self, number: int) -> None:
        """Remove older batches, but not the newest one: its number tells how many there were."""
        for old in self._listed():
            if old < min(number, self.count() - 1):
                if self._files(old).exists():
                    shutil.rmtree(self._files(old))
                self._list(old).unlink(missing_ok=True)

    def needed_from(self, number: int) -> Iterator[Path]:
        """The files of all batches from this one on, and the list of the newest in any case."""
        for one in sorted(self._listed()):
            if one >= number:
                yield from sorted(self._files(one).glob("*.arrow"))
            if one >= min(number, self.count() - 1):
                yield self._list(one)

    def _listed(self) -> list[int]:
        return [int(path.stem) for path in self._folder.glob("[0-9]" * 10 + ".json")]

    def _list(self, number: int) -> Path:
        return self._folder / f"{number:010d}.json"

    def _files(self, number: int) -> Path:
        return self._folder / f"{number:010d}"


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with exactly these types: another session may have another time zone or longer strings."""
    if batch.schema.equals(schema):
        return batch
    columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
