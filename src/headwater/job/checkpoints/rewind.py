"""Going back: a job folder is cut back to a checkpoint, in steps of which each can be done again.

First a file is written, with all that is needed to go on: where to, and the offsets of the epochs after it. From
then on the job is taken back, whatever happens: a process that finds the file finishes the work. Only then is anything
removed, and the file goes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from headwater.durable import sync_folder
from headwater.epoch.offset import Offset
from headwater.errors import JobError
from headwater.job.checkpoints.history import EpochLine
from headwater.job.checkpoints.replay import PlannedEpoch, Replay
from headwater.job.checkpoints.stored import Damage, StoredEpochs
from headwater.job.reading import JobReader
from headwater.versioned import Versioned


@dataclass(frozen=True)
class _Rewind(Versioned):
    """What was decided."""

    epoch: int
    """The one to go back to."""
    replay: Replay

    def _content(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "epochs": self.replay.to_json()["epochs"]}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:
        return cls(content["epoch"], Replay.from_json({"epochs": content["epochs"]}, where))


def begin_rewind(job: JobReader, stored: StoredEpochs, epoch: int, history: dict[int, EpochLine]) -> None:
    """Decide it: note where to go back to and what was planned after that. The caller holds the folder's lock."""
    _Rewind(epoch, _replay(job, stored, epoch, history)).write(job.layout.rewind)


def finish_rewind(job: JobReader) -> None:
    """Do what is left to do of a rewind that was decided. The caller holds the folder's lock."""
    rewind = _Rewind.read_if_there(job.layout.rewind)
    if rewind is None:
        return
    job.stored().cut(rewind.epoch - job.identity.first_epoch)
    rewind.replay.write_into(job.layout.outbox)
    job.layout.rewind.unlink()
    sync_folder(job.path)


def rewound_to(job: JobReader) -> int | None:
    """The epoch after which everything is about to be removed; None when no rewind is under way."""
    rewind = _Rewind.read_if_there(job.layout.rewind)
    return None if rewind is None else rewind.epoch


def lost_plan(job: JobReader, stored: StoredEpochs) -> JobError | None:
    """Why epochs that sinks have cannot be computed again, where the checkpoint is behind the outbox without a rewind."""
    published, replay = job.published().epoch, Replay.in_outbox(job.layout.outbox)
    last = max(stored.logged(), default=-1) + job.identity.first_epoch
    for epoch in range(last + 1, published + 1):
        if epoch not in replay.epochs:
            return _offsets_lost(job, stored, epoch, published)
    return None


def _offsets_lost(job: JobReader, stored: StoredEpochs, epoch: int, published: int) -> JobError:
    return JobError.offsets_lost(str(stored.offset_file(epoch - job.identity.first_epoch)), epoch, published)


def _replay(job: JobReader, stored: StoredEpochs, epoch: int, history: dict[int, EpochLine]) -> Replay:
    """What was planned after an epoch, from the log, or from an earlier rewind that has not been caught up with."""
    published, earlier = job.published().epoch, Replay.in_outbox(job.layout.outbox)
    batches = {job.identity.first_epoch + number: number for number in stored.logged()}
    committed = set(stored.committed())
    found: dict[int, PlannedEpoch] = {}
    is_whole = True
    for later in range(epoch + 1, max([epoch, *batches, *earlier.epochs]) + 1):
        number = batches.get(later)
        counts = number in committed or earlier.was_committed(later)
        if later > published:  # rows are published in order: from the first that is gone on, all are made anew
            is_whole = is_whole and counts and job.is_staged(later)
        offset = None if number is None else _logged(stored, number)
        if offset is None and later in earlier.epochs:
            offset = earlier.epochs[later].offset
        if offset is None and later in history and (counts or later <= published):
            offset = history[later].offset
        if offset is not None:
            found[later] = PlannedEpoch(offset, counts and is_whole)
        elif later <= published:
            raise _offsets_lost(job, stored, later, published)
        else:  # no sink has it, so it may be planned anew, and what comes after it
            break
    _check_cuts(job, epoch, found, max([published, *(e for e, one in found.items() if one.committed)]))
    return Replay(found)


def _check_cuts(job: JobReader, epoch: int, found: dict[int, PlannedEpoch], last: int) -> None:
    """Refuse to compute again, up to the last epoch whose rows are given, unaligned epochs that may be cut elsewhere.

    The first one has the budget that is stored in the checkpoint. What it measures decides about the next one.
    """
    unaligned = [later for later in range(epoch + 2, last + 1) if found[later].offset.unaligned_ms is not None]
    if unaligned:
        raise JobError.cut_elsewhere(str(job.path), epoch, unaligned[-1])


def _logged(stored: StoredEpochs, batch: int) -> Offset | None:
    """The offset after a batch; None where it cannot be read, and perhaps a copy can."""
    try:
        return stored.offset(batch)
    except Damage:
        return None
