"""The lookout over a folder: which files are new in it, and which of those are still being written."""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from headwater.connectors.files.ledger import FoundFile
from headwater.errors import GraphError
from headwater.stored_paths import below
from headwater.stored_paths.errors import UnsafePath

_TICK_NS = 2_000_000_000
"""File systems tell times in steps of so much at most: a folder that was changed less long ago may change unseen."""
_HIDDEN = ("_", ".")
"""What names begin with that readers of folders pass over, as of files that are not to be seen yet."""
ORDERS = ("modified", "name")


@dataclass(frozen=True)
class Look:
    """What was found that is new."""

    settled: list[FoundFile]
    """In the order in which they are to be read."""
    unsettled: list[FoundFile]
    """Those that may still be growing."""


class Lookout:
    """Looks for files below a folder that a pattern fits, `**` for any number of folders."""

    def __init__(self, folder: Path, pattern: str, order: str, settle_ms: int) -> None:
        if order not in ORDERS:
            raise GraphError.bad_argument(
                "read_files", f"reads in the order {' or '.join(ORDERS)}", order, "choose one"
            )
        parts = PurePosixPath(pattern).parts
        if not parts or pattern.startswith("/") or ".." in parts:
            raise GraphError.bad_argument(
                "read_files", "needs a pattern below its folder", pattern, "write it as '*.parquet' or '**/*.json'"
            )
        self.folder, self.pattern, self.order, self._settle_ms = folder, pattern, order, settle_ms
        self._seen: dict[FoundFile, float] = {}
        """The files that had not settled at the last look, and since when they are as they are."""
        self._changed_ns: dict[Path, int] | None = None
        """When each folder was last changed, if all that is in them was known then: until one is, nothing is new."""

    def look(self, known: Container[str], probe: Path) -> Look:
        """The new files. The time of the file system is that of the file `probe`, which is made or touched.

        A file has settled when it was last written so long ago; or, where clocks differ, when it has stayed as it is
        for so long.
        """
        if self._changed_ns is not None and self._changed_ns == _changed_ns(self._changed_ns):
            return Look([], [])
        probe.touch()
        now_ns, now_s = probe.stat().st_mtime_ns, time.monotonic()
        folders = self._folders()
        new = [path for path in self._names() if path not in known]
        self._changed_ns = None if new or not _are_older(folders, now_ns - _TICK_NS) else folders
        found = [file for path in new if (file := self._file(path)) is not None]
        if not found:
            self._seen = {}
            return Look([], [])
        self._seen = {file: self._seen.get(file, now_s) for file in found}
        look = Look([], [])
        for file in sorted(found, key=self._place):
            is_old = now_ns - file.modified_ns >= self._settle_ms * 1_000_000
            has_stayed = (now_s - self._seen[file]) * 1000 >= self._settle_ms
            (look.settled if is_old or has_stayed else look.unsettled).append(file)
        return look

    def first(self) -> Path | None:
        """The first file by name."""
        found = self.all()
        return below(self.folder, found[0].path, self.folder) if found else None

    def all(self) -> list[FoundFile]:
        """What is there now, by name, settled or not."""
        return [file for path in sorted(self._names()) if (file := self._file(path)) is not None]

    def path(self, file: FoundFile) -> Path:
        """Where a file is, which must be below the folder also when it is a link."""
        try:
            return below(self.folder, file.path, self.folder)
        except UnsafePath as error:
            raise ValueError(f"it is a link out of the folder, or its name leads out of it: {error}") from None

    def wait(self) -> None:
        """As long as it takes for a file to settle that nobody writes to."""
        time.sleep(self._settle_ms / 1000)

    def _place(self, file: FoundFile) -> tuple[int, str]:
        return (file.modified_ns if self.order == "modified" else 0), file.path

    def _names(self) -> list[str]:
        names = glob.iglob(self.pattern, root_dir=self.folder, recursive=True)  # noqa: PTH207  names, without a stat each
        return [name for name in names if not any(part.startswith(_HIDDEN) for part in name.split("/"))]

    def _folders(self) -> dict[Path, int] | None:
        """When each folder that may have files was last changed; None if that does not tell, as of links to folders."""
        folders = [self.folder]
        if "/" in self.pattern or "**" in self.pattern:
            for place, names, _ in os.walk(self.folder):
                below = [Path(place, name) for name in names]
                if any(folder.is_symlink() for folder in below):
                    return None
                folders += below
        return _changed_ns(folders)

    def _file(self, name: str) -> FoundFile | None:
        try:
            status = (self.folder / name).stat()
        except FileNotFoundError:  # gone since it was listed
            return None
        return FoundFile(name, status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else None


def _changed_ns(folders: Iterable[Path]) -> dict[Path, int] | None:
    """When each was last changed: when names in it last came or went. None if one is gone."""
    try:
        return {folder: folder.stat().st_mtime_ns for folder in folders}
    except OSError:
        return None


def _are_older(folders: dict[Path, int] | None, than_ns: int) -> bool:
    return folders is not None and max(folders.values()) < than_ns
