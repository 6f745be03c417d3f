"""Paths that stand in stored files: whoever wrote the file must not choose a file elsewhere to be read or written."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from headwater.stored_paths.errors import UnsafePath

_MAX_NAME_BYTES, _MAX_PATH_BYTES = 255, 2048
"""What Linux takes, and half of what it takes for a whole path, since the folder has a part in that."""


def below(folder: Path, name: object, where: object) -> Path:
    """The file of a name that a stored file gives, which must lie below its folder, also when links are followed.

    `where` the name stands is told when it does not.
    """
    if not isinstance(name, str) or not _is_plain(name):
        raise UnsafePath.of(where, name, folder)
    path = folder / name
    if folder.resolve() not in path.resolve().parents:
        raise UnsafePath.of(where, name, folder)
    return path


def _is_plain(name: str) -> bool:
    """Whether a name is parts with one `/` between them, of which none says something else to a path."""
    parts = name.split("/")
    return "\0" not in name and ".." not in parts and PurePosixPath(name).parts == tuple(parts) and _is_short(parts)


def _is_short(parts: list[str]) -> bool:
    """Whether a file system can have files of these names."""
    try:
        sizes = [len(os.fsencode(part)) for part in parts]
    except UnicodeEncodeError:
        return False
    return max(sizes) <= _MAX_NAME_BYTES and sum(sizes) <= _MAX_PATH_BYTES
