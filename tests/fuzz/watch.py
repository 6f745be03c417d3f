"""What a reader opens while it reads a damaged artefact: nothing outside of the folder of its target."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PROJECT = Path(__file__).parents[2]
_EVENTS = {
    "open",
    "os.listdir",
    "os.scandir",
    "os.mkdir",
    "os.rename",
    "os.remove",
    "os.rmdir",
    "os.symlink",
    "os.link",
}
_OWN = tuple(
    str(path)
    for path in {
        sys.prefix,
        sys.base_prefix,
        *sysconfig.get_paths().values(),
        _PROJECT,
        "/proc",
        "/sys",
        "/dev",
        "/usr",
        "/etc",
    }
)
"""Where Python, its packages and the system have what they load themselves, which is read only."""


class Outside(BaseException):
    """A file outside of its folder was opened; not an Exception, so that no reader takes it for damage."""


class _Watch:
    """One for the process, because an audit hook stays."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._folder is None or event not in _EVENTS:
            return
        path = arguments[0]
        if not isinstance(path, str | bytes | os.PathLike):
            return
        if event != "open" and isinstance(arguments[-1], int) and arguments[-1] >= 0:
            return  # in a folder that was opened, which was seen then
        found = os.path.realpath(os.fsdecode(path))
        if found.startswith(self._folder) or (event == "open" and found.startswith(_OWN) and not _writes(arguments)):
            return
        self.seen.append(f"{event} {found}")
        raise Outside(self.seen[-1])

    @contextmanager
    def below(self, folder: Path) -> Iterator[None]:
        self._folder, self.seen = os.path.realpath(folder), []
        try:
            yield
        finally:
            self._folder = None
        if self.seen:
            raise Outside(self.seen[0])


def _writes(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


WATCH = _Watch()
