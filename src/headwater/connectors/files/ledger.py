"""The ledger of files: every file that was found has a number, in the order of the lines of a file that only grows.

The first line says what the numbers rest on; a last one, if there is one, that no file comes any more. A process reads
each line once, and keeps of it where it begins.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwater.durable import append_lines, sync_folder
from headwater.errors import SourceError
from headwater.shapes import misfit

_FORMAT = 1
_MISSHAPEN = (LookupError, RecursionError, TypeError, ValueError)


@dataclass(frozen=True)
class FoundFile:
    """A file as it was when it got its number."""

    path: str
    """Below the folder that is read, with `/` between the parts."""
    size_bytes: int
    modified_ns: int


class Ledger:
    """One process's view of a ledger; what others have added is there after `catch_up`."""

    def __init__(self, path: Path, splits: int) -> None:
        self._path, self._splits = path, splits
        self._read_bytes = 0
        self._starts = array("q")
        """Where the line of each file begins."""
        self.is_begun = False
        self.is_closed = False
        """Whether no file will be added."""

    def __len__(self) -> int:
        return len(self._starts)

    def catch_up(self) -> list[FoundFile]:
        """The files that were added since the last call. A line that is not whole yet is no line."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as source:
            source.seek(self._read_bytes)
            added = source.read()
        found = []
        for line in added[: added.rfind(b"\n") + 1].splitlines(keepends=True):
            file = self._line(line)
            if file is not None:
                self._starts.append(self._read_bytes)
                found.append(file)
            self._read_bytes += len(line)
        return found

    def add(self, files: Sequence[FoundFile], *, close: bool = False) -> None:
        """Give files the next numbers, durably. The caller has caught up and keeps others from adding."""
        lines: list[dict[str, Any]] = [] if self.is_begun else [{"format": _FORMAT, "splits": self._splits}]
        for number, file in enumerate(files, len(self)):
            lines.append({"number": number, "path": file.path, "size": file.size_bytes, "modified": file.modified_ns})
        if close:
            lines.append({"end": len(self) + len(files)})
        if lines:
            append_lines(self._path, [json.dumps(line) for line in lines])
            if not self.is_begun:
                sync_folder(self._path.parent)
            self.catch_up()

    def file(self, number: int) -> FoundFile:
        """The file of a number."""
        if number >= len(self):
            self.catch_up()
        if number >= len(self):
            raise self._damaged(f"it ends before file {number}")
        with self._path.open("rb") as source:
            source.seek(self._starts[number])
            line = source.readline()
        try:
            return _file_in(json.loads(line))
        except _MISSHAPEN as error:
            raise self._damaged(f"file {number}: {type(error).__name__}: {error}") from None

    def _line(self, line: bytes) -> FoundFile | None:
        try:
            content = json.loads(line)
            if not self.is_begun:
                self._begin(content)
                return None
            if "end" in content:
                self.is_closed = True
                return None
            if content["number"] != len(self):
                raise self._damaged(f"file {content['number']!r:.100} is where file {len(self)} should be")
            return _file_in(content)
        except _MISSHAPEN as error:
            raise self._damaged(f"{type(error).__name__}: {error}") from None

    def _begin(self, head: dict[str, Any]) -> None:
        if head["format"] != _FORMAT:
            raise self._damaged(f"it has format {head['format']!r:.100}, this version reads {_FORMAT}")
        if head["splits"] != self._splits:
            raise SourceError.unreadable(
                str(self._path),
                f"its files are dealt to {head['splits']!r:.100} splits, the source has {self._splits}",
                f"give the source splits={head['splits']!r:.100}, or another uid to read everything anew",
            )
        self.is_begun = True

    def _damaged(self, problem: str) -> SourceError:
        return SourceError.unreadable(
            f"ledger {self._path}", problem, "restore it from a copy of the job folder or from a savepoint"
        )


def _file_in(line: dict[str, Any]) -> FoundFile:
    """The file that a line names."""
    found = FoundFile(line["path"], line["size"], line["modified"])
    if (problem := misfit(found)) is not None:
        raise TypeError(problem)
    return found
