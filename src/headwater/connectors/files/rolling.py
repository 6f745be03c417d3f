"""Rolling: files of several epochs wait out of sight until they are large or old enough, and become one.

What waits is published: the epoch is done, and its rows are kept below `_headwater/held/`. `_headwater/held.jsonl` says
what is held, a line for each epoch, and which folders are being rolled. A roll that was begun is ended by whoever finds
it: files are merged again from what is held until the result has its name.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from headwater.connectors.contract import Staged
from headwater.durable import append_line, sync_folder, write_atomically
from headwater.errors import JobError, JobFolderDamaged, PublishError
from headwater.stored_paths import below
from headwater.versioned import Versioned

Merge = Callable[[Sequence[Path], Path], None]
"""Writes the rows of files, in their order, to a new file."""
Record = Callable[[int, list[Staged]], None]
"""Notes files that can be seen now, with the newest epoch in them; perhaps again."""
_SPARE_LINES = 100
"""So many lines more than are needed the notes may have before they are written anew."""


@dataclass(frozen=True)
class Limits:
    """When files are rolled."""

    size_bytes: int | None
    age_ms: int | None


@dataclass(frozen=True)
class _File:
    """A file that is held, with its epoch and the processing time of that."""

    epoch: int
    now_ms: int
    name: str
    rows: int
    size_bytes: int

    @property
    def folder(self) -> str:
        return self.name.rpartition("/")[0]


@dataclass(frozen=True)
class _Line(Versioned):
    """A line of `held.jsonl`: files that are held, folders that are being rolled, or that these are done."""

    epoch: int = -1
    now_ms: int = 0
    files: tuple[tuple[str, int, int], ...] = ()
    """Of each its name, rows and bytes."""
    rolling: tuple[str, ...] = ()
    rolled: bool = False

    @classmethod
    def of(cls, epoch: int, now_ms: int, files: Iterable[_File]) -> _Line:
        """The files of an epoch."""
        return cls(epoch, now_ms, tuple((file.name, file.rows, file.size_bytes) for file in files))


@dataclass
class _Notes:
    """What the lines of `held.jsonl` say, one after the other."""

    epoch: int = -1
    """The newest epoch that was taken."""
    folders: dict[str, list[_File]] = field(default_factory=dict)
    """By partition folder, what is held for it, in the order of epochs."""
    size_bytes: dict[str, int] = field(default_factory=dict)
    rolling: dict[str, list[_File]] = field(default_factory=dict)
    """By folder, what is becoming one file."""
    lines: int = 0

    def hear(self, line: _Line) -> None:
        """Take the next line in; `KeyError` if it rolls what is not held."""
        self.lines += 1
        self.epoch = max(self.epoch, line.epoch)
        for name, rows, size_bytes in line.files:
            file = _File(line.epoch, line.now_ms, name, rows, size_bytes)
            self.folders.setdefault(file.folder, []).append(file)
            self.size_bytes[file.folder] = self.size_bytes.get(file.folder, 0) + size_bytes
        for folder in line.rolling:
            self.rolling[folder] = self.folders.pop(folder)
            del self.size_bytes[folder]
        if line.rolled:
            self.rolling = {}

    def said(self, *, up_to: int) -> Iterator[_Line]:
        """The fewest lines that say what is held of epochs up to one."""
        yield _Line(min(self.epoch, up_to))
        held = sorted((file for files in self.folders.values() for file in files), key=lambda file: file.epoch)
        for (epoch, now_ms), files in groupby(held, key=lambda file: (file.epoch, file.now_ms)):
            if epoch <= up_to:
                yield _Line.of(epoch, now_ms, files)


class Held:
    """The files that a sink holds. Its methods are called by the owner of the folder, and by one process at a time."""

    def __init__(self, folder: Path, limits: Limits, extension: str, merge: Merge, record: Record) -> None:
        self._folder, self._limits, self._extension = folder, limits, extension
        self._merge, self._record = merge, record
        self.uid = ""
        """Of the sink."""
        self._held = folder / "_headwater" / "held"
        self._file = folder / "_headwater" / "held.jsonl"
        self._notes = _Notes()

    def open(self) -> None:
        """Learn what is held, and end a roll that was begun."""
        self._notes = _Notes()
        if self._file.exists():
            with damage_told(self.uid, self._folder):
                self._hear_all()
        self._finish()

    def _hear_all(self) -> None:
        lines = self._file.read_text(errors="replace").split("\n")[:-1]  # what follows the last line end was torn
        for number, line in enumerate(lines, 1):
            where = f"{self._file}, line {number},"
            try:
                self._notes.hear(_Line.from_text(line, where))
            except KeyError as error:
                raise JobError.corrupt(where, f"it rolls {error}, and nothing is held there") from None

    def take(self, epoch: int, now_ms: int, files: Sequence[Staged], *, ended: bool) -> None:
        """Hold the files of an epoch, once, and roll what is due: at the end of input all."""
        notes = self._notes
        if files and epoch > notes.epoch:
            for staged in files:
                _move(Path(staged.path), below(self._held, staged.name, f"epoch {epoch}"), self.uid)
            taken = [_File(epoch, now_ms, file.name, file.rows, file.size_bytes) for file in files]
            self._say(_Line.of(epoch, now_ms, taken))
        self._roll(list(notes.folders) if ended else self._due(now_ms))

    def roll_all(self) -> None:
        """Let everything be seen."""
        self._roll(list(self._notes.folders))

    def give_up_after(self, epoch: int) -> None:
        """Forget what is held of later epochs: nobody has seen it, and it will come again."""
        self.open()
        if self._notes.epoch > epoch:
            later = [file for files in self._notes.folders.values() for file in files if file.epoch > epoch]
            self._rewrite(up_to=epoch)
            for file in later:
                self._path(file).unlink(missing_ok=True)

    def _path(self, file: _File) -> Path:
        """Where a file is held."""
        return below(self._held, file.name, self._file)

    def _due(self, now_ms: int) -> list[str]:
        notes, limits = self._notes, self._limits
        oldest_ms = min((files[0].now_ms for files in notes.folders.values()), default=now_ms)
        if limits.age_ms is not None and now_ms - oldest_ms >= limits.age_ms:
            return list(notes.folders)
        most = limits.size_bytes
        return [folder for folder, size_bytes in notes.size_bytes.items() if most is not None and size_bytes >= most]

    def _roll(self, folders: list[str]) -> None:
        if folders:
            self._say(_Line(rolling=tuple(folders)))
            self._finish()

    def _finish(self) -> None:
        rolling = self._notes.rolling
        if not rolling:
            return
        for folder, files in rolling.items():
            final = below(self._folder, self._name(folder, files), self._file)
            if not final.exists():
                self._show(files, final)
        seen = [self._seen(self._name(folder, files), files) for folder, files in rolling.items()]
        self._record(self._notes.epoch, seen)
        for file in (file for files in rolling.values() for file in files):
            self._path(file).unlink(missing_ok=True)
        self._say(_Line(rolled=True))
        if (
            self._notes.lines
            > 2 * len({file.epoch for files in self._notes.folders.values() for file in files}) + _SPARE_LINES
        ):
            self._rewrite(up_to=self._notes.epoch)

    def _show(self, files: list[_File], final: Path) -> None:
        merged = self._folder / "_headwater" / f"rolled.{self._extension}"
        merged.unlink(missing_ok=True)
        held = [self._path(file) for file in files]
        if missing := [path for path in held if not path.is_file()]:
            raise PublishError.staged_file_missing(self.uid, str(missing[0]))
        self._merge(held, merged)
        with merged.open("rb") as written:
            os.fsync(written.fileno())
        final.parent.mkdir(parents=True, exist_ok=True)
        merged.rename(final)
        sync_folder(final.parent)

    def _seen(self, name: str, files: list[_File]) -> Staged:
        path = below(self._folder, name, self._file)
        return Staged(self.uid, str(path), name, sum(file.rows for file in files), path.stat().st_size)

    def _name(self, folder: str, files: list[_File]) -> str:
        """After the newest epoch in it comes the oldest."""
        name = f"{self.uid}-{files[-1].epoch:010d}-from-{files[0].epoch:010d}.{self._extension}"
        return f"{folder}/{name}" if folder else name

    def _say(self, line: _Line) -> None:
        append_line(self._file, line.to_text())
        self._notes.hear(line)

    def _rewrite(self, *, up_to: int) -> None:
        """Write the notes anew, without what is over and what came after an epoch."""
        lines = list(self._notes.said(up_to=up_to))
        write_atomically(self._file, "".join(f"{line.to_text()}\n" for line in lines).encode())
        self._notes = _Notes()
        for line in lines:
            self._notes.hear(line)


@contextmanager
def damage_told(uid: str, folder: Path) -> Iterator[None]:
    """What is wrong with the notes in an output's folder, told as what it is."""
    try:
        yield
    except JobFolderDamaged as error:
        action = "restore it from a copy of the folder, or write to another one with a new job_dir"
        raise PublishError.cannot_write(uid, f"folder {folder}", error.damage, action) from None


def _move(staged: Path, to: Path, uid: str) -> None:
    if to.exists() and not staged.exists():
        return
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        staged.rename(to)
    except FileNotFoundError:
        raise PublishError.staged_file_missing(uid, str(staged)) from None
    sync_folder(to.parent)


def concatenated(files: Sequence[Path], to: Path, *, header: bool) -> None:
    """Text after text; of all but the first without the line that names the columns, where there is one."""
    with to.open("wb") as out:
        for number, path in enumerate(files):
            with path.open("rb") as source:
                if header and number:
                    source.readline()
                shutil.copyfileobj(source, out)
