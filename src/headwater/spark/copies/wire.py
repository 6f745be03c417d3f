"""What one worker asks of another on the same machine, and what that one answers: a head of JSON, and bytes behind it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from multiprocessing.connection import Connection
from typing import Any

from headwater.epoch.reports import TaskReport
from headwater.errors import HeadwaterError
from headwater.spark.copies.computed import Additions, Computed, ComputedForAnother, Place
from headwater.spark.failures import Failure
from headwater.state.changelog import Head

_FROM = "another worker"


@dataclass(frozen=True)
class Asked:
    """An epoch of a subtask, to be computed by the worker that has the copy of its state."""

    place: Place
    head: Head
    """What is committed; a copy that is not there is of no use."""
    payloads: list[bytes]
    holds: int
    """How many subtasks of the level the worker that asks has copies of."""

    def send(self, to: Connection) -> None:
        facts = {"level": self.place.level, "subtask": self.place.subtask, "head": self.head.to_text()}
        _send(to, {**facts, "holds": self.holds}, self.payloads)

    @classmethod
    def received(cls, of: Connection) -> Asked:
        facts, payloads = _received(of)
        head = Head.from_text(facts["head"], _FROM)
        return cls(Place(facts["level"], facts["subtask"]), head, payloads, facts["holds"])


class Refusal(Enum):
    """Why a worker does not compute an epoch for another one, which then does it itself."""

    NOT_CURRENT = "not current"
    """It has no copy, or one of another version."""
    BUSY = "busy"
    """It has more copies than it should, and computes something else just now. It gives this one up."""
    FAILED = "failed"
    """Something failed that is no error of ours; it may be the worker's own trouble, such as a lack of memory."""


Answer = ComputedForAnother | Refusal | HeadwaterError


def send_answer(answer: Answer, to: Connection) -> None:
    """Send what has become of what was asked."""
    if isinstance(answer, Refusal):
        _send(to, {"refusal": answer.value}, [])
    elif isinstance(answer, HeadwaterError):
        _send(to, {"failure": Failure.of(answer).to_text()}, [])
    else:
        computed, additions = answer.computed, answer.additions
        assert additions.after is not None
        facts = {
            "targets": [target for target, _ in computed.payloads],
            "removed": additions.removed,
            "records": [[sequence, token] for sequence, token, _ in additions.records],
            "after": additions.after.to_text(),
        }
        payloads = [payload for _, payload in computed.payloads]
        _send(to, facts, [computed.report.to_bytes(), *payloads, *[record for *_, record in additions.records]])


def received_answer(of: Connection, before: Head) -> Answer:
    """Receive what `send_answer` sends."""
    facts, parts = _received(of)
    if "refusal" in facts:
        return Refusal(facts["refusal"])
    if "failure" in facts:
        return Failure.from_text(facts["failure"], _FROM).made_again()
    report, targets = TaskReport.from_bytes(parts[0]), facts["targets"]
    records = parts[1 + len(targets) :]
    additions = Additions(
        before,
        Head.from_text(facts["after"], _FROM),
        [(sequence, token, record) for (sequence, token), record in zip(facts["records"], records, strict=True)],
        facts["removed"],
    )
    return ComputedForAnother(Computed(list(zip(targets, parts[1:], strict=False)), report), additions)


def _send(to: Connection, facts: dict[str, Any], parts: list[bytes]) -> None:
    to.send_bytes(json.dumps({**facts, "parts": len(parts)}).encode())
    for part in parts:
        to.send_bytes(part)


def _received(of: Connection) -> tuple[dict[str, Any], list[bytes]]:
    facts = json.loads(of.recv_bytes())
    return facts, [of.recv_bytes() for _ in range(facts["parts"])]
