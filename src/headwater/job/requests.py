"""What a running job can be asked by another process, and what it answers: small files in the job folder."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from headwater.job.layout import ControlLayout
from headwater.versioned import Versioned

_ANSWERS_KEPT_S = 3600
"""After that nobody comes for an answer any more."""


class Action(StrEnum):
    """What a job can be asked to do."""

    STOP = "stop"
    SAVEPOINT = "savepoint"
    STATE = "state"


@dataclass(frozen=True)
class StateRequest(Versioned):
    """Which state is asked for, of which epoch: without one, of the newest."""

    step: str
    name: str
    epoch: int | None = None


@dataclass(frozen=True)
class JobRequest(Versioned):
    """A request, which the job removes when it takes it up."""

    action: Action
    savepoint: str | None = None
    """The folder of the savepoint to take; a stop may be without."""
    drain: bool = False
    """Whether the input ends where it is before the job stops."""
    state: StateRequest | None = None
    """The state to look at."""

    def _content(self) -> dict[str, Any]:
        content = super()._content()
        del content["state"]  # a job that knows of no such request reads all others
        return content if self.state is None else {**content, "state": self.state.to_json()}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        state = content.get("state")
        state = None if state is None else StateRequest.from_json(state, where)
        return super()._of({**content, "action": Action(content["action"]), "state": state}, where)


@dataclass(frozen=True)
class JobAnswer(Versioned):
    """What came of a request, which who asked removes when it has been read."""

    savepoint: str | None = None
    """The folder of the savepoint that was taken."""
    error: str | None = None
    """Why it could not be done; None when it was."""
    epoch: int | None = None
    """The epoch of the state that was asked for; its entries are in a file beside the answer."""

    def _content(self) -> dict[str, Any]:
        return {name: value for name, value in super()._content().items() if name != "epoch" or value is not None}


def forget_requests(control: ControlLayout) -> None:
    """Remove what a job was asked that is gone, and answers that nobody came for."""
    for asked in control.waiting():
        control.request(asked).unlink(missing_ok=True)
    for path in control.answers.glob("*"):
        with suppress(FileNotFoundError):  # somebody has come for it just now
            if path.stat().st_mtime < time.time() - _ANSWERS_KEPT_S:
                path.unlink()
