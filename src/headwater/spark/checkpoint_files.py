"""A checkpoint folder as Spark's logs and state store write it: read, checked and cut back, without Spark.

Spark logs the offsets of a batch, stores a version of state in each place (a partition of a level), and then commits
the batch. Version n + 1 is the state after batch n: the newest snapshot up to it, and a changelog for every version
between. Beside each file lies a checksum file, which Hadoop writes and removes with it.
"""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from headwater.durable import sync_folder
from headwater.epoch.offset import Offset
from headwater.errors import JobFolderDamaged
from headwater.job.checkpoints.stored import Damage
from headwater.stored_paths import below
from headwater.stored_paths.errors import UnsafePath

_OFFSETS, _COMMITS, _STATE = "offsets", "commits", "state"
_BATCH = re.compile(r"(\d+)")
_VERSION = re.compile(r"(\d+)\.(?:zip|changelog)")
_SUMS_MAGIC = b"crc\0"
_BLOCK_BYTES = 1 << 20
_MOST_PIECE_BYTES = 16 << 20
"""Hadoop sums up pieces of 512 bytes unless it is told otherwise."""
_NOT_A_SNAPSHOT = (EOFError, LookupError, OSError, RuntimeError, TypeError, ValueError, zipfile.BadZipFile, zlib.error)
"""What reading an archive, and a list in it, can raise: a RuntimeError is that of an unknown form, or of deep nesting."""
_MOST_LISTED_BYTES = 64 << 20
"""Of what a snapshot says of itself: a line for each of its tables."""


class CheckpointFiles:
    """The files as they are when they are asked for; the versions of a place, and what is sound, are looked at once."""

    def __init__(self, folder: Path, levels: int = 0, parallelism: int = 0) -> None:
        """Without the sizes of the job, its logs alone can be read."""
        self._offsets, self._commits, self._state = (folder / name for name in (_OFFSETS, _COMMITS, _STATE))
        self._query = folder / "metadata"
        self._places = [self._state / str(level) / str(part) for level in range(levels) for part in range(parallelism)]
        self._sound: set[Path] = set()

    def logged(self) -> list[int]:
        """The batches whose offsets are there, oldest first."""
        return sorted(_numbered(self._offsets, _BATCH))

    def is_committed(self, batch: int) -> bool:
        """Whether a batch is committed and retained."""
        return (self._commits / str(batch)).exists()

    def has_commits(self) -> bool:
        """Whether there is a log of commits."""
        return self._commits.exists()

    def committed(self) -> list[int]:
        """The batches that are committed, oldest first."""
        return sorted(_numbered(self._commits, _BATCH))

    def changed_ns(self) -> int:
        """When a batch was last committed or forgotten; 0 before the first."""
        try:
            return self._commits.stat().st_mtime_ns
        except FileNotFoundError:
            return 0

    def offset(self, batch: int) -> Offset:
        """The offset after a batch."""
        path = self.offset_file(batch)
        found = _read_log(path)
        try:
            return Offset.from_json(found, str(path))
        except JobFolderDamaged:
            raise Damage(path, "it does not hold an offset") from None

    def offset_file(self, batch: int) -> Path:
        """Where the offset after a batch is kept."""
        return self._offsets / str(batch)

    def committed_ms(self, batch: int) -> int:
        """When a batch was committed."""
        return (self._commits / str(batch)).stat().st_mtime_ns // 1_000_000

    def size_bytes(self, batch: int) -> int:
        """The bytes of state that a batch added."""
        added = (versions.get(batch + 1, []) for versions in self._versions.values())
        return sum(path.stat().st_size for paths in added for path in paths if path.suffix == ".changelog")

    def check(self, batch: int, *, whole: bool) -> None:
        """Raise the damage that keeps a job from going on after a committed batch; `whole` reads all its state for it.

        Spark wants the offsets before the batch too, because it may have to compute the batch again.
        """
        for earlier in range(max(0, batch - 1), batch + 1):
            self.offset(earlier)
        _read_log(self._commits / str(batch))
        for path in self._described():
            _check_sums(path)
        for place in self._places:
            for path in self._state_files(place, batch + 1):
                if whole and path not in self._sound:
                    _check_sums(path)
                    self._sound.add(path)

    def _described(self) -> Iterator[Path]:
        """What Spark notes of the query and of the form of its state; small, and read at every start."""
        yield self._query
        for kind in ("_metadata", "_stateSchema"):
            found = self._state.glob(f"*/{kind}/**/*")
            yield from sorted(path for path in found if path.is_file() and not path.name.startswith("."))

    def cut(self, batch: int) -> None:
        """Remove, for good, everything after a batch. Done again, it does what is left to do."""
        for log in (self._commits, self._offsets):
            _remove_after(log, _BATCH, batch)
        for place in self._places:
            _remove_after(place, _VERSION, batch + 1)
        for metadata in sorted(self._state.glob("*/_metadata/v2")):
            _remove_after(metadata, _BATCH, batch)

    @cached_property
    def _versions(self) -> dict[Path, dict[int, list[Path]]]:
        return {place: _numbered(place, _VERSION) for place in self._places}

    def _state_files(self, place: Path, version: int) -> Iterator[Path]:
        """What Spark reads to bring a place to a version."""
        versions = self._versions[place]
        snapshots = [n for n in versions if n <= version and place / f"{n}.zip" in versions[n]]
        first = max(snapshots, default=0)
        if snapshots:
            snapshot = place / f"{first}.zip"
            yield snapshot
            yield from _tables(snapshot)
        for number in range(first + 1, version + 1):
            changelog = place / f"{number}.changelog"
            if changelog not in versions.get(number, []):
                raise Damage(changelog, "it is missing")
            yield changelog


def committed(folder: Path) -> Iterator[Path]:
    """The files that say what a query has committed, to be copied first: nothing in a copy is committed and not there."""
    yield from _files(folder / _COMMITS)


def planned(folder: Path) -> Iterator[Path]:
    """All other files of a query, what it has planned first."""
    yield from _files(folder / _OFFSETS)
    yield from (path for path in _files(folder) if path.relative_to(folder).parts[0] not in (_COMMITS, _OFFSETS))


def _files(folder: Path) -> Iterator[Path]:
    yield from (path for path in sorted(folder.rglob("*")) if path.is_file())


def _numbered(folder: Path, pattern: re.Pattern[str]) -> dict[int, list[Path]]:
    """The files of a folder that are named by a number, by that number."""
    found: dict[int, list[Path]] = {}
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if named := pattern.fullmatch(path.name):
                found.setdefault(int(named[1]), []).append(path)
    return found


def _remove_after(folder: Path, pattern: re.Pattern[str], number: int) -> None:
    doomed = [path for at, paths in sorted(_numbered(folder, pattern).items()) if at > number for path in paths]
    for path in reversed(doomed):
        _sums_of(path).unlink(missing_ok=True)  # first, because it is found by the name of the file
        path.unlink()
    if doomed:
        sync_folder(folder)


def _read_log(path: Path) -> Any:
    """What the last line of a log's file holds."""
    try:
        version, *lines = path.read_text().splitlines()
        if version != "v1" or not lines:
            raise ValueError("it is empty or of another version")
        content = json.loads(lines[-1])
    except FileNotFoundError:
        raise Damage(path, "it is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise Damage(path, str(error)) from None
    _check_sums(path)
    return content


def _tables(snapshot: Path) -> list[Path]:
    """The table files that a snapshot names, which lie beside it because later snapshots share them."""
    try:
        with zipfile.ZipFile(snapshot) as parts:
            listed = parts.getinfo("metadata")
            if (size_bytes := max(listed.file_size, listed.compress_size)) > _MOST_LISTED_BYTES:
                raise ValueError(f"it lists its tables in {size_bytes} bytes")
            named = json.loads(parts.read("metadata").decode().split("\n", 1)[1])["sstFiles"]
        tables = [(below(snapshot.parent / "SSTs", one["dfsSstFileName"], snapshot), one["sizeBytes"]) for one in named]
    except (UnsafePath, *_NOT_A_SNAPSHOT) as error:
        raise Damage(snapshot, f"it is not a snapshot: {error}") from None
    for table, size in tables:
        if not table.exists():
            raise Damage(table, "it is missing")
        if table.stat().st_size != size:
            raise Damage(table, f"it has {table.stat().st_size} bytes instead of {size}")
    return [table for table, _ in tables]


def _check_sums(path: Path) -> None:
    """Compare a file with the checksums beside it; where the file system keeps none, the file is taken as it is."""
    if not path.exists():
        raise Damage(path, "it is missing")
    sums = _sums_of(path)
    if not sums.exists():
        return
    stored = sums.read_bytes()
    piece_bytes = int.from_bytes(stored[4:8])
    if stored[:4] != _SUMS_MAGIC or not 0 < piece_bytes <= _MOST_PIECE_BYTES:
        raise Damage(path, f"its checksums in {sums.name} cannot be read")
    expected = [stored[at : at + 4] for at in range(8, len(stored), 4)]
    number = 0
    with path.open("rb") as source:
        while block := source.read(piece_bytes * max(1, _BLOCK_BYTES // piece_bytes)):
            for at in range(0, len(block), piece_bytes):
                found = zlib.crc32(block[at : at + piece_bytes]).to_bytes(4)
                if found != (expected[number] if number < len(expected) else None):
                    raise Damage(path, f"its checksum does not fit at byte {number * piece_bytes}")
                number += 1
    if number < len(expected):
        raise Damage(path, f"it ends at byte {path.stat().st_size} and was longer when it was written")


def _sums_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")
