from __future__ import annotations

import json
import struct
import zipfile
import zlib
from pathlib import Path

import pytest

from headwater.spark.damage import damaged_file

LOADING = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
COMMITTED = 3
SST = "000008-aa.sst"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Epochs 0 to 3 are committed, epoch 4 is under way; of the state there is a snapshot of version 2."""
    root = tmp_path / "checkpoint"
    _write(root / "metadata", b'{"id":"x"}')
    for epoch in range(COMMITTED + 2):
        _write(root / "offsets" / str(epoch), b"v1\n" + bytes(1300))
    for epoch in range(COMMITTED + 1):
        _write(root / "commits" / str(epoch), b'v1\n{"nextBatchWatermarkMs":0}')
    store = root / "state" / "0" / "1"
    for version in range(1, COMMITTED + 3):
        _write(store / f"{version}.changelog", bytes(2000))
    _write(store / "SSTs" / SST, bytes(700))
    with zipfile.ZipFile(store / "2.zip", "w") as packed:
        packed.writestr("metadata", "v1\n" + json.dumps({"sstFiles": [{"dfsSstFileName": SST}]}))
    _write(store / "2.zip", (store / "2.zip").read_bytes())
    _write(root / "state" / "0" / "_metadata" / "v2" / "0", b"v2\n{}")
    return root


def _write(path: Path, content: bytes) -> None:
    """As Spark does on a local file system: the file, and beside it the checksums of its parts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    sums = [zlib.crc32(content[start : start + 512]) for start in range(0, len(content), 512)]
    path.with_name(f".{path.name}.crc").write_bytes(struct.pack(f">4sI{len(sums)}I", b"crc\0", 512, *sums))


READ = [
    "metadata",
    "offsets/4",
    "offsets/3",
    "commits/3",
    "state/0/_metadata/v2/0",
    "state/0/1/2.zip",
    f"state/0/1/SSTs/{SST}",
    "state/0/1/3.changelog",
    "state/0/1/4.changelog",
]


@pytest.mark.parametrize("name", READ)
def test_changed_byte_is_found(checkpoint: Path, name: str) -> None:
    path = checkpoint / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert damaged_file(checkpoint, LOADING) == (
        path,
        f"it is not what was written, from byte {(len(content) - 1) // 512 * 512} on (it has {len(content)} bytes)",
    )


@pytest.mark.parametrize("name", READ)
def test_empty_file_is_found(checkpoint: Path, name: str) -> None:
    (checkpoint / name).write_bytes(b"")
    assert damaged_file(checkpoint, LOADING) == (checkpoint / name, "it is empty")


def test_file_cut_at_the_end_of_a_part_is_found(checkpoint: Path) -> None:
    path = checkpoint / "state/0/1/4.changelog"
    path.write_bytes(path.read_bytes()[:1024])
    assert damaged_file(checkpoint, LOADING) == (path, "it was cut short, to 1024 bytes")


@pytest.mark.parametrize("name", ["metadata", "offsets/3", f"state/0/1/SSTs/{SST}", "state/0/1/4.changelog"])
def test_missing_file_is_found(checkpoint: Path, name: str) -> None:
    (checkpoint / name).unlink()
    assert damaged_file(checkpoint, LOADING) == (checkpoint / name, "it is not there")


def test_missing_file_that_spark_names_is_found(checkpoint: Path) -> None:
    path = checkpoint / "state/0/0/9.delta"
    assert damaged_file(checkpoint, f"java.io.FileNotFoundException: File file:{path} does not exist") == (
        path,
        "it is not there",
    )


def test_damaged_checksums_are_found(checkpoint: Path) -> None:
    (checkpoint / ".metadata.crc").write_bytes(b"crc")
    assert damaged_file(checkpoint, LOADING) == (
        checkpoint / "metadata",
        "its checksums in .metadata.crc are cut short",
    )


def test_what_a_start_does_not_read_is_passed_over(checkpoint: Path) -> None:
    """A kill may leave it in any condition."""
    for name in ("state/0/1/5.changelog", "state/0/1/1.changelog", "offsets/1", "commits/2"):
        (checkpoint / name).write_bytes(b"")
    assert damaged_file(checkpoint, LOADING) is None


def test_file_without_checksums_is_taken_as_it_is(checkpoint: Path) -> None:
    (checkpoint / "commits" / ".3.crc").unlink()
    (checkpoint / "commits" / "3").write_bytes(b"v1")
    assert damaged_file(checkpoint, LOADING) is None


def test_error_about_something_else_is_left_alone(checkpoint: Path) -> None:
    (checkpoint / "metadata").write_bytes(b"")
    assert damaged_file(checkpoint, "Job aborted: ExecutorLostFailure") is None
