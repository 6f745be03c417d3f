"""Rolling: files of several epochs wait out of sight until they are large or old enough, and become one.

What waits is published: the epoch is done, and its rows are kept below `_headwater/held/`. `_headwater/held.json` says
what is held and what is being rolled. It is replaced as a whole, before and after each step that must not be done by
halves; a process that finds a roll that was begun ends it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from headwater.connectors.contract import Staged
from headwater.durable import sync_folder, write_atomically
from headwater.errors import PublishError

Merge = Callable[[Sequence[Path], Path], None]
"""Writes the rows of files, in their order, to a new file."""
Record = Callable[[int, list[Staged]], None]
"""Notes files that can be seen now, with the newest epoch in them; perhaps again."""


@dataclass(frozen=True)
class Limits:
    """When files are rolled."""

    size_bytes: int | None
    age_ms: int | None


@dataclass(frozen=True)
class _File:
    name: str
    rows: int
    size_bytes: int
    epoch: int
    now_ms: int
    """The processing time of its epoch."""

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]


@dataclass(frozen=True)
class _Notes:
    """What `held.json` says."""

    epoch: int = -1
    """The newest epoch that was taken."""
    files: list[_File] = field(default_factory=list)
    rolling: dict[str, list[_File]] = field(default_factory=dict)
    """By the name of a file that is to be seen, what it is made of."""


class Held:
    """The files that a sink holds. Its methods are called by one process at a time."""

    def __init__(self, folder: Path, limits: Limits, extension: str, merge: Merge, record: Record) -> None:
        self._folder, self._limits, self._extension = folder, limits, extension
        self._merge, self._record = merge, record
        self.uid = ""
        """Of the sink."""
        self._held = folder / "_headwater" / "held"
        self._file = folder / "_headwater" / "held.json"

    def take(self, epoch: int, now_ms: int, files: Sequence[Staged], *, ended: bool) -> None:
        """Hold the files of an epoch, once, and roll what is due: at the end of input all."""
        notes = self.finish()
        if epoch > notes.epoch:
            taken = [_File(file.name, file.rows, file.size_bytes, epoch, now_ms) for file in files]
            for file, staged in zip(taken, files, strict=True):
                _move(Path(staged.path), self._held / file.name, self.uid)
            notes = self._write(replace(notes, epoch=epoch, files=[*notes.files, *taken]))
        self._roll(notes, notes.files if ended else self._due(notes.files, now_ms))

    def roll_all(self) -> None:
        """Let everything be seen."""
        notes = self.finish()
        self._roll(notes, notes.files)

    def give_up_after(self, epoch: int) -> None:
        """Forget what is held of later epochs: nobody has seen it, and it will come again."""
        notes = self.finish()
        if notes.epoch > epoch:
            self._write(replace(notes, epoch=epoch, files=[file for file in notes.files if file.epoch <= epoch]))

    def finish(self) -> _Notes:
        """End a roll that was begun. Files are merged again from what is held until the result has its name."""
        notes = self._read()
        if not notes.rolling:
            return notes
        for name, files in notes.rolling.items():
            final = self._folder / name
            if not final.exists():
                merged = self._folder / "_headwater" / f"rolled.{self._extension}"
                merged.unlink(missing_ok=True)
                self._merge([self._held / file.name for file in files], merged)
                _sync(merged)
                final.parent.mkdir(parents=True, exist_ok=True)
                merged.rename(final)
                sync_folder(final.parent)
        self._record(notes.epoch, [self._seen(name, files) for name, files in notes.rolling.items()])
        for file in (file for files in notes.rolling.values() for file in files):
            (self._held / file.name).unlink(missing_ok=True)
        return self._write(replace(notes, rolling={}))

    def _seen(self, name: str, files: list[_File]) -> Staged:
        path = self._folder / name
        return Staged(self.uid, str(path), name, sum(file.rows for file in files), path.stat().st_size)

    def _due(self, files: list[_File], now_ms: int) -> list[_File]:
        age_ms, size_bytes = self._limits.age_ms, self._limits.size_bytes
        if age_ms is not None and files and now_ms - min(file.now_ms for file in files) >= age_ms:
            return files
        held: dict[str, int] = {}
        for file in files:
            held[file.folder] = held.get(file.folder, 0) + file.size_bytes
        return [file for file in files if size_bytes is not None and held[file.folder] >= size_bytes]

    def _roll(self, notes: _Notes, due: list[_File]) -> None:
        if not due:
            return
        by_folder: dict[str, list[_File]] = {}
        for file in due:
            by_folder.setdefault(file.folder, []).append(file)
        rolling = {self._name(folder, files): files for folder, files in by_folder.items()}
        rest = [file for file in notes.files if file not in due]
        self._write(replace(notes, files=rest, rolling=rolling))
        self.finish()

    def _name(self, folder: str, files: list[_File]) -> str:
        """After the newest epoch in it comes the oldest."""
        name = f"{self.uid}-{files[-1].epoch:010d}-from-{files[0].epoch:010d}.{self._extension}"
        return f"{folder}/{name}" if folder else name

    def _read(self) -> _Notes:
        if not self._file.exists():
            return _Notes()
        content = json.loads(self._file.read_text())
        rolling = {name: [_File(**file) for file in files] for name, files in content["rolling"].items()}
        return _Notes(content["epoch"], [_File(**file) for file in content["files"]], rolling)

    def _write(self, notes: _Notes) -> _Notes:
        write_atomically(self._file, json.dumps(asdict(notes)).encode())
        return notes


def _move(staged: Path, to: Path, uid: str) -> None:
    if to.exists() and not staged.exists():
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        staged.rename(to)
    except FileNotFoundError:
        raise PublishError.staged_file_missing(uid, str(staged)) from None
    sync_folder(to.parent)


def _sync(path: Path) -> None:
    with path.open("rb") as written:
        os.fsync(written.fileno())


def concatenated(files: Sequence[Path], to: Path, *, header: bool) -> None:
    """Text after text; of all but the first without the line that names the columns, where there is one."""
    with to.open("wb") as out:
        for number, path in enumerate(files):
            with path.open("rb") as source:
                if header and number:
                    source.readline()
                shutil.copyfileobj(source, out)
