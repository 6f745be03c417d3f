"""What the outbox stores: the manifest of an epoch that waits to be published, and how far epochs are published."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from headwater.connectors.contract import Staged
from headwater.epoch.offset import BySplit
from headwater.versioned import Versioned


@dataclass(frozen=True)
class Manifest(Versioned):
    """The files of an epoch, and where it ends."""

    epoch: int
    files: tuple[Staged, ...]
    end: bool = False
    """Whether the input has ended with it."""
    positions: BySplit = field(default_factory=dict)
    """How far sources were read."""
    now_ms: int = 0
    """The time of the epoch."""

    @classmethod
    def of(cls, epoch: int, staged: Iterable[Staged], *, end: bool, positions: BySplit, now_ms: int) -> Manifest:
        """With files in the order of their places, in whatever order their tasks came to an end."""
        return cls(epoch, tuple(sorted(staged, key=lambda file: (file.sink, file.name))), end, positions, now_ms)

    def is_staged(self) -> bool:
        """Whether all its files are there."""
        return all(Path(file.path).exists() for file in self.files)

    def _content(self) -> dict[str, Any]:
        return {**super()._content(), "files": [asdict(file) for file in self.files]}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        return super()._of({**content, "files": tuple(Staged(**file) for file in content["files"])}, where)


@dataclass(frozen=True)
class Published(Versioned):
    """The newest epoch that every sink has."""

    epoch: int
    end: bool = False
    positions: BySplit = field(default_factory=dict)
