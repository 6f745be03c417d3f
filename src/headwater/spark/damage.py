"""Which file of a checkpoint is damaged, when Spark could not read it: its errors seldom name the file.

On a local file system Spark keeps beside each file of a checkpoint a hidden one with the CRC-32 of every 512 bytes. So a
file that was cut short or changed can be told from one that is as it was written.
"""

from __future__ import annotations

import json
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path

_SIGNS = (
    "hecksum",
    "log file",
    "STATE_STORE",
    "STREAMING_CHECKPOINT",
    "STREAM_LOG",
    "StreamMetadata",
    "does not exist",
)
"""What Spark's errors have in common when a file of a checkpoint is not what it should be."""
_MISSING = re.compile(r"File (?:file:)?(/\S+) does not exist")
_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\0"


def damaged_file(checkpoint: Path, said: str) -> tuple[Path, str] | None:
    """The file behind an error of Spark's, and what is wrong with it; None when the error is about something else."""
    if not any(sign in said for sign in _SIGNS):
        return None
    for path in _files(checkpoint):
        problem = _problem(path)
        if problem is not None:
            return path, problem
    missing = _MISSING.search(said)
    if missing is not None and Path(missing[1]).is_relative_to(checkpoint):
        return Path(missing[1]), "it is not there"
    return None


def _files(checkpoint: Path) -> Iterator[Path]:
    """What a start reads, and nothing else: what an epoch left that was not committed may be in any condition."""
    yield checkpoint / "metadata"
    planned, committed = _newest(checkpoint / "offsets"), _newest(checkpoint / "commits")
    if planned is not None:
        yield checkpoint / "offsets" / str(planned)
    if committed is None:
        return
    yield checkpoint / "offsets" / str(committed)
    yield checkpoint / "commits" / str(committed)
    for kind in ("_metadata", "_stateSchema"):
        yield from sorted(p for p in checkpoint.glob(f"state/*/{kind}/**/*") if p.is_file() and p.name[0] != ".")
    for store in sorted(checkpoint.glob("state/[0-9]*/[0-9]*")):
        yield from _versions(store, committed + 1)


def _versions(store: Path, version: int) -> Iterator[Path]:
    """The newest snapshot of a state store up to a version, the files it refers to, and the changes since."""
    snapshots = [int(path.stem) for path in store.glob("[0-9]*.zip") if path.stem.isdigit()]
    snapshot = max((number for number in snapshots if number <= version), default=0)
    if snapshot:
        yield store / f"{snapshot}.zip"
        with zipfile.ZipFile(store / f"{snapshot}.zip") as packed:
            _, _, content = packed.read("metadata").partition(b"\n")
        yield from (store / "SSTs" / file["dfsSstFileName"] for file in json.loads(content)["sstFiles"])
    yield from (store / f"{number}.changelog" for number in range(snapshot + 1, version + 1))


def _newest(log: Path) -> int | None:
    return max((int(path.name) for path in log.glob("[0-9]*") if path.name.isdigit()), default=None)


def _problem(path: Path) -> str | None:
    """What is wrong with a file; a file without checksums is taken as it is, unless it is empty."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return "it is not there"
    if not content:
        return "it is empty"
    sums_file = path.with_name(f".{path.name}.crc")
    if not sums_file.exists():
        return None
    sums = sums_file.read_bytes()
    if len(sums) < _HEADER.size:
        return f"its checksums in {sums_file.name} are cut short"
    magic, chunk_bytes = _HEADER.unpack_from(sums)
    if magic != _MAGIC or not chunk_bytes:
        return f"its checksums in {sums_file.name} are damaged"
    expected = sums[_HEADER.size :]
    for number, start in enumerate(range(0, len(content), chunk_bytes)):
        found = zlib.crc32(content[start : start + chunk_bytes]).to_bytes(4, "big")
        if found != expected[4 * number : 4 * number + 4]:
            return f"it is not what was written, from byte {start} on (it has {len(content)} bytes)"
    if len(expected) != 4 * -(-len(content) // chunk_bytes):
        return f"it was cut short, to {len(content)} bytes"
    return None
