"""What is fuzzed: an artefact that Headwater stores or reads, how it is damaged, and what its reader may make of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import Any

from headwater.errors import HeadwaterError


class WrongRows(AssertionError):
    """A damaged artefact was read, and what came of it is not what was stored."""


class Target(ABC):
    """Made once in a folder of its own, below which everything that it reads and writes must lie."""

    name: str
    """What `make fuzz TARGET=…` calls it."""
    refusals: tuple[type[Exception], ...] = (HeadwaterError,)
    """What a reader refuses with."""
    subjects: tuple[str, ...]
    """What the text of a refusal says is wrong: one of these is in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def whole(self) -> Any:
        """The artefact as it was stored."""

    @abstractmethod
    def mutant(self, random: Random) -> Any:
        """The artefact, damaged or forged; the same for the same state of `random`."""

    @abstractmethod
    def read(self, artefact: Any) -> None:
        """Read it as the product does. It is refused with an error of ours, or `WrongRows` unless all is as stored."""


def expect(found: object, stored: object, what: str) -> None:
    """What was read must be what was stored."""
    if found != stored:
        raise WrongRows(f"{what} is {found!r:.400}, not {stored!r:.400}")
