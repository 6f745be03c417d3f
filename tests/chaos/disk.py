"""A small disk of the suite's own, so that it can be filled without harm: a tmpfs, where one may be mounted."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

_FREE_AGAIN = "ballast"


class Disk:
    """A folder on a file system of limited size. Without the right to mount one it is a plain folder."""

    def __init__(self, path: Path, size_mb: int) -> None:
        self.path = path
        path.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0700", "headwater-chaos", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            self.why_not = "" if done.returncode == 0 else done.stderr.strip() or f"mount ended with {done.returncode}"
        except OSError as error:
            self.why_not = str(error)
        """Why nothing could be mounted; empty when it was."""

    @property
    def can_be_filled(self) -> bool:
        """Whether the disk is the suite's own."""
        return not self.why_not

    def fill(self) -> int:
        """Take all the space that is left; the number of bytes."""
        ballast = self.path / _FREE_AGAIN
        with ballast.open("wb") as out:
            taken = 0
            for size in (1 << 20, 1 << 12):
                while True:
                    try:
                        os.posix_fallocate(out.fileno(), taken, size)
                    except OSError:
                        break
                    taken += size
        return taken

    def free(self) -> None:
        """Give the space back."""
        (self.path / _FREE_AGAIN).unlink(missing_ok=True)

    def used_mb(self) -> float:
        """What the job takes."""
        return shutil.disk_usage(self.path).used / (1 << 20)

    def keep(self, to: Path) -> None:
        """Copy what is on the disk to where it outlives the mount."""
        self.free()
        shutil.copytree(self.path, to)

    def remove(self) -> None:
        """Unmount it."""
        if self.can_be_filled:
            subprocess.run(["umount", "--lazy", str(self.path)], capture_output=True, timeout=30, check=False)
