"""The history of epochs: a line for each one that was computed, in `epochs.jsonl` of the job folder.

It is there to be looked at, and as a second copy of the offsets; a job does not need it to go on. So lines are not
forced to the disk: the last one may be torn or missing after a crash. An epoch that is computed again has a second
line, and the last one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from headwater.durable import write_atomically
from headwater.epoch import offsets
from headwater.epoch.reports import positions_of
from headwater.job.checkpoints.files import CheckpointFiles, Damage
from headwater.job.folder import CHECKPOINT
from headwater.job.status import JobStatus, update_status

FILE = "epochs.jsonl"
_PRUNE_AFTER_LINES = 1000
"""Seldom enough to cost nothing, often enough to keep the file at about a megabyte."""

Line = dict[str, Any]


class History:
    """The driver's side: adds a line for each epoch, and drops those of epochs that are no longer retained."""

    def __init__(self, job_dir: Path) -> None:
        self._path = job_dir / FILE
        self._files = CheckpointFiles(job_dir / CHECKPOINT, 0, 0)
        self._out: FileIO | None = None
        self._room = 0

    def add(self, batch: int, reports: Sequence[dict[str, Any]], duration_ms: int) -> None:
        """Note an epoch, before it is committed."""
        if self._out is None or not self._room:
            self._open()
        assert self._out is not None
        line = _line(self._files.offset(batch), reports, duration_ms)
        self._out.write(json.dumps(line, sort_keys=True, separators=(",", ":")).encode() + b"\n")
        self._room -= 1

    def close(self) -> None:
        """Let go of the file."""
        if self._out is not None:
            self._out.close()
            self._out = None

    def _open(self) -> None:
        self.close()
        known = read_history(self._path)
        oldest = self._oldest()
        kept = [json.dumps(line, sort_keys=True, separators=(",", ":")) for e, line in known.items() if e >= oldest]
        if known:
            write_atomically(self._path, "".join(f"{line}\n" for line in kept).encode())
        self._out = FileIO(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), "a")
        self._room = _PRUNE_AFTER_LINES

    def _oldest(self) -> int:
        """The oldest epoch whose offsets are still there."""
        for batch in self._files.logged():
            try:
                return int(self._files.offset(batch)["epoch"]) - 1
            except Damage:  # then nothing can start from it
                continue
        return 0


def read_history(path: Path) -> dict[int, Line]:
    """The lines by epoch, in order; a line that a crash has torn is passed over."""
    found: dict[int, Line] = {}
    if path.exists():
        for text in path.read_text(errors="replace").splitlines():
            try:
                line = json.loads(text)
                found[line["epoch"]] = line
            except (ValueError, TypeError, KeyError):
                continue
    return dict(sorted(found.items()))


def _line(offset: offsets.Offset, reports: Sequence[dict[str, Any]], duration_ms: int) -> Line:
    epoch = offsets.facts_of(offset).epoch
    status = JobStatus("running")
    update_status(status, epoch, reports)
    written: dict[str, dict[str, int]] = {}
    for one in reports:
        for uid, states in one.get("changelog", {}).get("states", {}).items():
            for state, size in states.items():
                written.setdefault(uid, {})
                written[uid][state] = written[uid].get(state, 0) + size
    return {
        "epoch": epoch,
        "time_ms": offsets.wall_clock(epoch),
        "duration_ms": duration_ms,
        "offset": offset,
        "starts": positions_of(reports, "starts"),
        "steps": {uid: {**facts, "changelog_bytes": written.get(uid, {})} for uid, facts in status.steps.items()},
        "stored_bytes": sum(one["changelog"]["stored_bytes"] for one in reports if "changelog" in one),
    }
