"""Going back: a job folder is cut back to a checkpoint, in steps of which each can be done again.

First `rewind.json` is written, with all that is needed to go on: where to, and the offsets of the epochs after it. From
then on the job is taken back, whatever happens: a process that finds the file finishes the work. Only then is anything
removed, and the file goes last.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from headwater.durable import sync_folder, write_atomically
from headwater.errors import JobError
from headwater.runtime.checkpoints.files import CheckpointFiles, Damage
from headwater.runtime.checkpoints.history import Line
from headwater.runtime.checkpoints.replay import PlannedEpoch, Replay
from headwater.runtime.folder import CHECKPOINT, OUTBOX
from headwater.runtime.offsets import Offset
from headwater.runtime.outbox import Outbox
from headwater.runtime.steps import ignore_steps

FILE = "rewind.json"


def begin_rewind(job_dir: Path, files: CheckpointFiles, batch: int, history: dict[int, Line]) -> None:
    """Decide it: note where to go back to and what was planned after that. The caller holds the folder's lock."""
    epoch = files.offset(batch)["epoch"] - 1
    replay = _replay(job_dir, files, batch, epoch, history)
    content = {"batch": batch, "epoch": epoch, **replay.content()}
    write_atomically(job_dir / FILE, json.dumps(content).encode())


def finish_rewind(job_dir: Path) -> None:
    """Do what is left to do of a rewind that was decided. The caller holds the folder's lock."""
    note = _read(job_dir)
    if note is None:
        return
    files = CheckpointFiles(job_dir / CHECKPOINT, *sizes_of(job_dir))
    files.cut(note["batch"])
    Replay.of(note).write(job_dir / OUTBOX)
    (job_dir / FILE).unlink()
    sync_folder(job_dir)


def rewound_to(job_dir: Path) -> int | None:
    """The batch after which everything is about to be removed; None when no rewind is under way."""
    note = _read(job_dir)
    return None if note is None else int(note["batch"])


def sizes_of(job_dir: Path) -> tuple[int, int]:
    """The number of levels and the parallelism of the job in a folder."""
    path = job_dir / "job.json"
    try:
        shape = json.loads(path.read_text())["shape"]
        return max((step["level"] for step in shape["steps"].values()), default=0), int(shape["parallelism"])
    except FileNotFoundError:
        raise JobError.no_job(str(job_dir)) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise JobError.corrupt(str(path), str(error)) from None


def _read(job_dir: Path) -> dict[str, Any] | None:
    path = job_dir / FILE
    try:
        note: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise JobError.corrupt(str(path), str(error)) from None
    return note


def _replay(job_dir: Path, files: CheckpointFiles, batch: int, epoch: int, history: dict[int, Line]) -> Replay:
    """What was planned after an epoch, from the log, or from an earlier rewind that has not been caught up with."""
    outbox = Outbox(job_dir / OUTBOX, {}, ignore_steps)
    earlier = Replay.read(job_dir / OUTBOX)
    batches = {epoch + number - batch: number for number in files.logged() if number > batch}
    committed = set(files.committed())
    found: dict[int, PlannedEpoch] = {}
    is_whole = True
    for later in range(epoch + 1, max([epoch, *batches, *earlier.epochs]) + 1):
        number = batches.get(later)
        counts = number in committed or earlier.was_committed(later)
        if later > outbox.published:  # rows are published in order: from the first that is gone on, all are made anew
            is_whole = is_whole and counts and outbox.is_staged(later)
        offset = None if number is None else _logged(files, number)
        if offset is None and later in earlier.epochs:
            offset = earlier.epochs[later].offset
        if offset is None and later in history and (counts or later <= outbox.published):
            offset = history[later]["offset"]
        if offset is not None:
            found[later] = PlannedEpoch(offset, counts and is_whole)
        elif later <= outbox.published:
            raise JobError.offsets_lost(str(job_dir / CHECKPOINT / "offsets" / str(number)), later, outbox.published)
        else:  # no sink has it, so it may be planned anew, and what comes after it
            break
    return Replay(found)


def _logged(files: CheckpointFiles, batch: int) -> Offset | None:
    """The offset after a batch; None where it cannot be read, and perhaps a copy can."""
    try:
        return files.offset(batch)
    except Damage:
        return None
