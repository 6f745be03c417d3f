"""Damage to the newest file of a checkpoint, as a disk may do it, with the copy that mends it."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Damage:
    """A file that is not what was written any more."""

    path: Path
    how: str
    before: bytes
    after: bytes

    @classmethod
    def to_newest_file(cls, job: Path, chance: random.Random) -> Damage:
        """Damage a file that the next start must read. The job must not be running."""
        path = chance.choice(_read_at_start(job, chance))
        # Headwater's own files have no checksums: of JSON that was changed and not cut, nobody can tell.
        how = chance.choice(("cut", "emptied") if path.suffix == ".json" else ("changed", "cut", "emptied"))
        before = path.read_bytes()
        middle = len(before) // 2
        changed = before[:middle] + bytes([before[middle] ^ 0x55]) + before[middle + 1 :]
        after = {"changed": changed, "cut": before[:middle], "emptied": b""}[how]
        path.write_bytes(after)
        return cls(path, how, before, after)

    def mend(self) -> None:
        """Put the copy back, unless the job has written the file anew."""
        if self.path.exists() and self.path.read_bytes() == self.after:
            self.path.write_bytes(self.before)


def _read_at_start(job: Path, chance: random.Random) -> list[Path]:
    """The newest file of each kind: both of Spark's logs, a state store, what Headwater has published."""
    checkpoint = job / "checkpoint"
    commit = _newest(checkpoint / "commits")
    store = chance.choice(sorted(checkpoint.glob("state/[0-9]*/[0-9]*")))
    snapshot = store / f"{int(commit.name) + 1}.zip"
    state = snapshot if snapshot.exists() else store / f"{int(commit.name) + 1}.changelog"
    return [_newest(checkpoint / "offsets"), commit, state, job / "outbox" / "published.json"]


def _newest(log: Path) -> Path:
    return max((path for path in log.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
