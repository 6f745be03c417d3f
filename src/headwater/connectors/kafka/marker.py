"""How far a job has published to a topic, as the cluster and the job's folder know it.

The cluster's word is the offset of a consumer group that nobody consumes with: the epoch's number, committed in the
transaction of its records. Kafka forgets such offsets some days after the last one. So before each transaction the
job notes its epoch in its own folder, and before the first of them it sends a marker alone. If there is a note and the
cluster has no marker, it was forgotten, and whether the epoch of the note has been sent is not known.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from headwater.connectors.kafka.send_errors import SendError
from headwater.shapes import misfit
from headwater.versioned import Versioned

_FORMAT = 1


@dataclass(frozen=True)
class Marker:
    """The epochs of a job that a topic has, and who writes there after it, if a savepoint was started from."""

    job: str
    epoch: int = -1
    next_job: str | None = None
    before: str | None = None
    """The job that the savepoint is of."""
    savepoint: int | None = None
    """Its epoch."""

    def handed_to(self, job: str, before: str, savepoint: int) -> Marker:
        """The same, of a job that has no more to say here."""
        return replace(self, next_job=job, before=before, savepoint=savepoint)

    @property
    def offset(self) -> int:
        """What is committed as the group's offset."""
        return self.epoch + 1

    @property
    def metadata(self) -> str:
        """What is committed with it."""
        facts = {
            "format": _FORMAT,
            "job": self.job,
            "next": self.next_job,
            "before": self.before,
            "savepoint": self.savepoint,
        }
        return json.dumps({name: fact for name, fact in facts.items() if fact is not None})

    @classmethod
    def read(cls, offset: int, metadata: str) -> Marker:
        """A marker out of what was committed."""
        try:
            facts = json.loads(metadata)
            found = cls(facts["job"], offset - 1, facts.get("next"), facts.get("before"), facts.get("savepoint"))
            if (problem := misfit(found) or _newer(facts.get("format", _FORMAT))) is not None:
                raise TypeError(problem)
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise SendError(
                f"the offset that is committed for this sink is no marker of Headwater's ({error}): {metadata!r:.100}",
                "see who has set or reset it, and set it back; a newer marker needs the newer Headwater that wrote it",
                is_final=True,
            ) from None
        return found


def _newer(version: object) -> str | None:
    return None if version == _FORMAT else f"it is of version {version!r:.100}, and this Headwater knows {_FORMAT}"


@dataclass(frozen=True)
class _Sent(Versioned):
    job: str
    topic: str
    epoch: int


class Note:
    """The epoch that was last begun to be sent, in a file beside the staged ones."""

    def __init__(self, staged: str, sink: str, job: str, topic: str) -> None:
        self.path = Path(staged).with_name(f"sent-{sink}.json")
        self._of = (job, topic)

    def epoch(self) -> int:
        """The number; -1 if there is none for this job and topic."""
        noted = _Sent.read_if_there(self.path)
        return noted.epoch if noted is not None and (noted.job, noted.topic) == self._of else -1

    def write(self, epoch: int) -> None:
        """Note, before its transaction, that an epoch is about to be sent."""
        _Sent(*self._of, epoch).write(self.path)
