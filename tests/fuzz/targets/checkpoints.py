"""What Headwater itself reads of Spark's checkpoints: logs, snapshots, changelogs, and the checksums beside them."""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.target import Target, WrongRows, expect

import headwater as hw
from headwater.epoch.offset import Offset
from headwater.job.checkpoints.listing import Checkpoints
from headwater.job.identity import JobIdentity
from headwater.job.layout import JobLayout

_EPOCHS = 4
_PIECE_BYTES = 512
_GONE = b"gone"
"""Stands for a file that is not there."""
_SHAPE = {"parallelism": 1, "key groups": 128, "sources": ["rows"], "steps": {"count": {"level": 1}}}


class SparkCheckpoints(Target):
    """A job of four epochs with a snapshot after the second; a file is damaged, or forged with a checksum that fits."""

    name = "checkpoint"
    subjects = ("checkpoint", "job")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._job = folder / "job"
        layout = JobLayout(self._job)
        layout.outbox.path.mkdir(parents=True)
        JobIdentity("counts", "dd13", _SHAPE).write(layout.job)
        self._checkpoint = layout.checkpoint
        place = "state/0/0"
        files: dict[str, bytes] = {"metadata": b'{"id":"cc13"}', "state/0/_metadata/v2/0": b"v2\n{}"}
        for epoch in range(_EPOCHS):
            offset = Offset(epoch + 1, end=False, positions={"rows": {"0": 10 * epoch}}, now_ms=1_000 + epoch)
            files[f"offsets/{epoch}"] = f'v1\n{{"batchWatermarkMs":0}}\n{json.dumps(offset.to_json())}'.encode()
            files[f"commits/{epoch}"] = b'v1\n{"nextBatchWatermarkMs":0}'
            files[f"{place}/{epoch + 1}.changelog"] = bytes(range(256)) * (3 + epoch)
        table = bytes(range(200, 256)) * 20
        files[f"{place}/SSTs/000007-cc13.sst"] = table
        named = {
            "sstFiles": [{"localSstFileName": "7.sst", "dfsSstFileName": "000007-cc13.sst", "sizeBytes": len(table)}]
        }
        files[f"{place}/2.zip"] = _snapshot(json.dumps(named))
        self._named = named
        self._zip = f"{place}/2.zip"
        self._files = files | {_sums_name(name): _sums(content) for name, content in files.items()}
        for name, content in self._files.items():
            (self._checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
            (self._checkpoint / name).write_bytes(content)
        self._stored = {one.epoch: _facts(one) for one in Checkpoints(self._job)}

    def whole(self) -> dict[str, bytes]:
        return {}

    def mutant(self, random: Random) -> dict[str, bytes]:
        """By name, files as they are now; a checksum that fits is there only for what is forged."""
        name = random.choice(list(self._files))
        how = random.random()
        if how < 0.05:
            return {name: _GONE}
        others = [content for other, content in self._files.items() if other != name]
        if how < 0.7:
            return {name: mutated(random, self._files[name], others)}
        if how < 0.85:
            return _with_sums(self._zip, _snapshot(mutated_json(random, self._named)))
        if how < 0.9:
            return _with_sums(self._zip, mutated(random, self._files[self._zip], others))
        epoch = random.randrange(_EPOCHS)
        offset = json.loads(self._files[f"offsets/{epoch}"].splitlines()[-1])
        return _with_sums(f"offsets/{epoch}", b"v1\n{}\n" + mutated_json(random, offset).encode())

    def read(self, artefact: dict[str, bytes]) -> None:
        for name, content in artefact.items():
            path = self._checkpoint / name
            if content is _GONE:
                path.unlink()
            else:
                path.write_bytes(content)
        try:
            self._look(artefact)
        finally:
            for name in artefact:
                (self._checkpoint / name).write_bytes(self._files[name])

    def _look(self, artefact: dict[str, bytes]) -> None:
        found = Checkpoints(self._job)
        found.describe()
        is_forged = len(artefact) > 1
        first = None
        for epoch in (_EPOCHS - 1, 1):
            try:
                found.check(epoch)
            except hw.JobError as error:
                first = first or error
                continue
            if not is_forged:
                expect(_facts(found[epoch]), self._stored[epoch], f"epoch {epoch}")
                self._check_bytes(epoch, artefact)
        if first is not None:
            raise first

    def _check_bytes(self, epoch: int, artefact: dict[str, bytes]) -> None:
        """What Spark would read for an epoch that was found sound is what it wrote."""
        snapshot = self._zip if epoch >= 1 else None
        needed = {f"offsets/{epoch}", f"commits/{epoch}", "metadata", "state/0/_metadata/v2/0"}
        needed |= {f"state/0/0/{n}.changelog" for n in range(3 if snapshot else 1, epoch + 2)}
        needed |= {snapshot, "state/0/0/SSTs/000007-cc13.sst"} if snapshot else set()
        for name, content in artefact.items():
            # Where the file is gone that says how state is stored, Spark itself does not go on.
            if name in needed and content is not _GONE and content != self._files[name]:
                raise WrongRows(f"epoch {epoch} is called sound, and {name} is damaged")


def _facts(checkpoint: Any) -> tuple[object, ...]:
    return (checkpoint.epoch, checkpoint.now_ms, checkpoint.positions, checkpoint.ended, checkpoint.published)


def _with_sums(name: str, content: bytes) -> dict[str, bytes]:
    return {name: content, _sums_name(name): _sums(content)}


def _sums_name(name: str) -> str:
    folder, _, last = name.rpartition("/")
    return f"{folder}/.{last}.crc" if folder else f".{last}.crc"


def _sums(content: bytes) -> bytes:
    """As Hadoop writes them."""
    pieces = [content[at : at + _PIECE_BYTES] for at in range(0, len(content), _PIECE_BYTES)]
    return b"crc\0" + _PIECE_BYTES.to_bytes(4) + b"".join(zlib.crc32(piece).to_bytes(4) for piece in pieces)


def _snapshot(named: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr(zipfile.ZipInfo("metadata"), f"v1\n{named}")
        parts.writestr(zipfile.ZipInfo("MANIFEST-000004"), bytes(range(100)))
    return out.getvalue()
