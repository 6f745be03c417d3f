"""What sources remember beside positions: a folder for each in the job's own, copied into savepoints and out of them."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from headwater.durable import sync_folder
from headwater.epoch.offset import BySplit
from headwater.plan.plan import JobPlan
from headwater.savepoints.errors import SavepointError
from headwater.savepoints.files import RememberedFile, Savepoint, folder_name
from headwater.savepoints.origin import Origin
from headwater.stored_paths import below

_CHUNK_BYTES = 1 << 20


def begin_sources(plan: JobPlan, root: Path, origin: Origin | None, *, is_new: bool) -> None:
    """Give every source its folder and let it check itself; refuses input that is not what was read before.

    A new job finds there what its origin has, whatever an attempt to start it has left behind.
    """
    for node in plan.sources():
        uid = plan.graph.uid(node)
        folder = root / folder_name(uid)
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        if is_new and origin is not None:
            for file in origin.remembered(uid):
                _restore(origin.savepoint(), file, below(folder, file.name, origin.path))
        node.source.remember_in(folder)
        node.source.check(node.schema)
    if origin is not None:
        origin.check_input(plan)


def save_remembered(plan: JobPlan, root: Path, positions: BySplit, into: Path) -> dict[str, list[RememberedFile]]:
    """Copy what a job needs that goes on from these positions into the folder of a savepoint."""
    found = {}
    for node in plan.sources():
        uid = plan.graph.uid(node)
        folder = root / folder_name(uid)
        kept = []
        for path in node.source.needed(folder, dict(positions.get(uid, {}))):
            relative = f"sources/{folder_name(uid)}/{path.relative_to(folder).as_posix()}"
            try:
                size_bytes, sha256 = _copied(path, into / relative)
            except FileNotFoundError:
                if path.exists():
                    raise
                continue
            kept.append(RememberedFile(relative, size_bytes, sha256))
        if kept:
            found[uid] = kept
    return found


def copy_remembered(before: Savepoint, into: Path) -> dict[str, list[RememberedFile]]:
    """Carry on what the sources of a savepoint remember into one that is based on it."""
    remembered = before.description.remembered
    for files in remembered.values():
        for file in files:
            _restore(before, file, below(into, file.path, before.path))
    return remembered


def _restore(savepoint: Savepoint, file: RememberedFile, to: Path) -> None:
    path = savepoint.of(file)
    try:
        _, sha256 = _copied(path, to)
    except FileNotFoundError as error:
        raise SavepointError.corrupt(path, str(error)) from None
    if sha256 != file.sha256:
        raise SavepointError.corrupt(path, "its checksum does not fit")


def _copied(path: Path, to: Path) -> tuple[int, str]:
    """Copy a file durably, as long as it is at this moment; its size and checksum."""
    digest, size_bytes = hashlib.sha256(), 0
    with path.open("rb") as source:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("wb") as out:
            while chunk := source.read(_CHUNK_BYTES):
                digest.update(chunk)
                size_bytes += out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
    sync_folder(to.parent)
    return size_bytes, digest.hexdigest()
