"""Where everything is in a job folder. Nobody else names its files.

The folder as a whole has a version, `FORMAT`, which `job.json` says. The files in it have versions of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FORMAT = 2
_MANIFEST = "manifest-"
_PLAN = "plan-"


@dataclass(frozen=True)
class OutboxLayout:
    """The outbox, which a job without a job folder has too."""

    path: Path

    @property
    def published(self) -> Path:
        """How far epochs are published."""
        return self.path / "published.json"

    @property
    def marks(self) -> Path:
        """The watermarks of splits, for the planner."""
        return self.path / "marks.json"

    @property
    def backlog(self) -> Path:
        """How much work waits, for the planner."""
        return self.path / "backlog.json"

    @property
    def replay(self) -> Path:
        """The epochs that are to be computed again."""
        return self.path / "replay.json"

    def manifest(self, epoch: int) -> Path:
        """The manifest of an epoch that is not yet published."""
        return self.path / f"{_MANIFEST}{epoch:010d}.json"

    def epochs(self) -> list[int]:
        """The epochs that have a manifest, in order."""
        return sorted(int(path.stem.removeprefix(_MANIFEST)) for path in self.path.glob(f"{_MANIFEST}*.json"))

    def plan(self, run_id: str) -> Path:
        """The plan of a run, for its workers; requests to the planner lie beside it."""
        return self.path / f"{_PLAN}{run_id}.pickle"

    def plans(self) -> Iterator[Path]:
        """The plans of all runs, with what lies beside them."""
        return self.path.glob(f"{_PLAN}*")


@dataclass(frozen=True)
class ControlLayout:
    """Where other processes ask a running job, and it answers."""

    path: Path

    @property
    def requests(self) -> Path:
        """What is asked and not yet taken up, a file each."""
        return self.path / "requests"

    @property
    def answers(self) -> Path:
        """What was answered and not yet read, a file each."""
        return self.path / "answers"

    def request(self, asked: str) -> Path:
        """A request, by its id."""
        return self.requests / f"{asked}.json"

    def answer(self, asked: str) -> Path:
        """The answer to a request, by its id."""
        return self.answers / f"{asked}.json"

    def table(self, asked: str) -> Path:
        """The entries of a state that was asked for, by the id of the request."""
        return self.answers / f"{asked}.arrow"

    def waiting(self) -> list[str]:
        """The ids of the requests, oldest first: they begin with the time."""
        return sorted(path.stem for path in self.requests.glob("[0-9]*.json"))


@dataclass(frozen=True)
class JobLayout:
    """The paths of one job folder. To ask for one creates nothing."""

    path: Path

    @property
    def job(self) -> Path:
        """Which job it is, and what it keeps."""
        return self.path / "job.json"

    @property
    def lock(self) -> Path:
        """Held by the process that runs the job, which it names."""
        return self.path / "lock"

    @property
    def epochs(self) -> Path:
        """A line for each epoch that was computed."""
        return self.path / "epochs.jsonl"

    @property
    def restarts(self) -> Path:
        """A line for each time that the job was started again after a failure."""
        return self.path / "restarts.jsonl"

    @property
    def status(self) -> Path:
        """Where the job stands, written by its driver whenever that changes."""
        return self.path / "status.json"

    @property
    def outline(self) -> Path:
        """What the last run is, in words: steps, guarantees, settings."""
        return self.path / "outline.json"

    @property
    def durations(self) -> Path:
        """A line for each of the newest epochs that were published: how long each part of it took."""
        return self.path / "durations.jsonl"

    @property
    def log(self) -> Path:
        """What the job logs, where a command line runs it; older parts lie beside it."""
        return self.path / "job.log"

    @property
    def rewind(self) -> Path:
        """A way back that was decided and is not yet gone to its end."""
        return self.path / "rewind.json"

    @property
    def checkpoint(self) -> Path:
        """What the engine keeps, in its own form."""
        return self.path / "checkpoint"

    @property
    def sources(self) -> Path:
        """What sources remember beside positions."""
        return self.path / "sources"

    @property
    def origin(self) -> Path:
        """The savepoint that the job was given when it started from a checkpoint of another."""
        return self.path / "origin"

    @property
    def control(self) -> ControlLayout:
        """Requests to the running job, and its answers."""
        return ControlLayout(self.path / "control")

    @property
    def outbox(self) -> OutboxLayout:
        """What waits to be published, and what the driver and the planner tell each other."""
        return OutboxLayout(self.path / "outbox")
