"""What an engine keeps of the epochs of a job, as far as others need to know; each engine has a form of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from headwater.epoch.offset import Offset


class Damage(Exception):
    """A file of a checkpoint that is missing or is not what was written."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path, self.problem = path, problem


class StoredEpochs(Protocol):
    """The epochs in a checkpoint folder, which the engine counts from 0, whatever the job's first one is."""

    def logged(self) -> list[int]:
        """Those whose offsets are there, oldest first."""

    def changed_ns(self) -> int:
        """When a batch was last committed or forgotten; 0 before the first."""

    def committed(self) -> list[int]:
        """Those that are committed, oldest first."""

    def offset(self, batch: int) -> Offset:
        """The offset after one."""

    def offset_file(self, batch: int) -> Path:
        """Where it is kept."""

    def committed_ms(self, batch: int) -> int:
        """When one was committed."""

    def size_bytes(self, batch: int) -> int:
        """The bytes of state that one added."""

    def check(self, batch: int, *, whole: bool) -> None:
        """Raise the damage that keeps a job from going on after a committed one; `whole` reads all its state for it."""

    def cut(self, batch: int) -> None:
        """Remove, for good, everything after one. Done again, it does what is left to do."""
