"""The JSON files of a job folder: damaged by chance, and written by somebody else in any shape."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.target import Target, WrongRows, expect

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.epoch.manifest import Manifest, Published
from headwater.epoch.notes import EpochNote
from headwater.epoch.offset import BySplit, Offset, Pace
from headwater.epoch.outbox import Outbox
from headwater.job.checkpoints.history import EpochLine, read_history
from headwater.job.checkpoints.replay import PlannedEpoch, Replay
from headwater.job.checkpoints.rewind import _Rewind, rewound_to
from headwater.job.durations import DurationsFile, read_durations
from headwater.job.identity import JobIdentity
from headwater.job.layout import JobLayout
from headwater.job.outline import (
    JobOutline,
    OutlineInput,
    OutlinePath,
    OutlineStep,
    OutlineWatermarks,
    OutlineWindow,
)
from headwater.job.reading import JobReader
from headwater.job.requests import Action, JobAnswer, JobRequest
from headwater.job.splits import SplitStatus
from headwater.job.status import JobStatus, RestartReason, StepStatus
from headwater.savepoints.origin import Origin
from headwater.savepoints.renaming import Renaming

_OFFSET = Offset(
    4,
    end=False,
    positions={"rows": {"0": 10, "1": 7}},
    started_ms=1_794_830_501_484,
    now_ms=1_794_830_529_076,
    active_ms={"rows": {"0": 1_794_830_529_076}},
    pace=Pace(4, paused=True),
    unaligned_ms=500,
)
_STEP = StepStatus.of({"rows_in": 7, "rows_out": 3, "watermark_ms": 8, "state": {"n": 2}, "late_dropped": 4})
_REASONS = [RestartReason(n, 1_794_830_529_076 + n, 100 * n, "UserCodeError", f"no {n}", "count") for n in (1, 2)]
_SHAPE = {
    "parallelism": 2,
    "key groups": 128,
    "sources": ["rows"],
    "steps": {"count": {"key": "k: string", "level": 1, "states": {"n": ["value", "bigint"]}}},
}

_OUTLINE = JobOutline(
    "spark",
    "0.1.0",
    12,
    2,
    1,
    {"parallelism": "2"},
    (
        OutlineStep(
            "count",
            "window",
            1,
            (OutlineInput("rows", None, "key_by(k)"),),
            "k string",
            is_source=False,
            is_sink=False,
            is_stateful=True,
            sets_time=False,
            detail="",
            times_from=("rows",),
            window=OutlineWindow("tumbling(10 ms)", True, 10, 10, 0, 0),
            watermarks=OutlineWatermarks("from ts", "ts", 0, None, None, 0),
        ),
    ),
    (OutlinePath("rows", "out", "exactly-once", ("its rows can be read again",)),),
)


@dataclass(frozen=True)
class _Mutant:
    file: str
    content: bytes
    is_sealed: bool
    """Whether it may be another record: it has no checksum, as what was written before there were any."""


class JobFolders(Target):
    name = "job-folder"
    subjects = ("job", "outbox", "control", "names", "sink")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._job = folder / "job"
        layout = JobLayout(self._job)
        for needed in (layout.outbox.path, layout.control.requests, layout.control.answers):
            needed.mkdir(parents=True)
        origin = Origin("/saved", "ab" * 32, "cc", 3, Renaming((("old", "count"),)))
        JobIdentity("counts", "dd13", _SHAPE, origin).write(layout.job)
        Published(4, end=False, positions=_OFFSET.positions).write(layout.outbox.published)
        staged = (Staged("out", "/elsewhere/0000000005-out-0", "out-5.jsonl", 3, 40),)
        Manifest(5, staged, positions=_OFFSET.positions, now_ms=12).write(layout.outbox.manifest(5))
        replay = Replay({3: PlannedEpoch(_OFFSET, committed=True)})
        replay.write_into(layout.outbox)
        _Rewind(3, replay).write(layout.rewind)
        EpochNote(layout.outbox.marks, BySplit, is_needed=True).write(4, {"rows": {"0": 8}})
        EpochNote(layout.outbox.backlog, float, is_needed=True).write(4, 0.5)
        splits = {"rows": {"0": SplitStatus(7, 8, is_idle=False, last_rows_ms=12)}}
        status = JobStatus("running", 4, 4, 4, {"count": _STEP}, _OFFSET.positions, None, tuple(_REASONS), splits, 12)
        status.write(layout.status)
        JobRequest(Action.STOP, "/saved", drain=True).write(layout.control.request("1-a"))
        JobAnswer("/saved", None).write(layout.control.answer("1-a"))
        layout.restarts.write_text("".join(f"{reason.to_text()}\n" for reason in _REASONS))
        lines = [EpochLine(n, 12 + n, 800, _OFFSET, {"rows": {"0": 8}}, {"count": _STEP}, 5_684) for n in (2, 3)]
        layout.epochs.write_text("".join(f"{line.to_text()}\n" for line in lines))
        _OUTLINE.write(layout.outline)
        for epoch in (2, 3):
            DurationsFile(layout.durations, lambda: 12.0).add(epoch, {"compute": 0.5, "publish": 0.1})
        self._readers: dict[str, Callable[[], Any]] = {
            "job.json": self._identity,
            "outbox/published.json": lambda: JobReader(self._job).published(),
            "outbox/manifest-0000000005.json": self._manifest,
            "outbox/replay.json": lambda: Replay.in_outbox(layout.outbox),
            "outbox/marks.json": lambda: EpochNote(layout.outbox.marks, BySplit, is_needed=True).read(5, None),
            "outbox/backlog.json": lambda: EpochNote(layout.outbox.backlog, float, is_needed=True).read(5, None),
            "rewind.json": lambda: rewound_to(JobReader(self._job)),
            "status.json": self._status,
            "control/requests/1-a.json": lambda: JobRequest.read(layout.control.request("1-a")),
            "control/answers/1-a.json": lambda: JobAnswer.read(layout.control.answer("1-a")),
            "restarts.jsonl": lambda: {repr(reason) for reason in JobReader(self._job).restarts()},
            "outline.json": lambda: JobReader(self._job).outline(),
            "durations.jsonl": lambda: {repr(one) for one in read_durations(layout.durations).values()},
            "epochs.jsonl": lambda: {_shown(line) for line in read_history(layout.epochs).values()},
        }
        self._files = {name: (self._job / name).read_bytes() for name in self._readers}
        self._stored = {name: read() for name, read in self._readers.items()}

    def whole(self) -> _Mutant:
        return _Mutant("job.json", self._files["job.json"], is_sealed=False)

    def mutant(self, random: Random) -> _Mutant:
        name = random.choice(list(self._files))
        content = self._files[name]
        if random.random() < 0.4:
            others = [other for at, other in self._files.items() if at != name]
            return _Mutant(name, mutated(random, content, others), is_sealed=False)
        lines = content.splitlines()
        at = random.randrange(len(lines))
        document = json.loads(lines[at])
        is_sealed = random.random() < 0.6
        if is_sealed:
            del document["crc32"]
        text = mutated_json(random, document, [json.loads(line) for line in lines])
        lines[at] = text.encode()
        is_sealed = is_sealed or '"crc32"' not in text
        return _Mutant(name, b"\n".join(lines) + b"\n" * name.endswith("l"), is_sealed)

    def read(self, artefact: _Mutant) -> None:
        path = self._job / artefact.file
        path.write_bytes(artefact.content)
        try:
            found = self._readers[artefact.file]()
        finally:
            path.write_bytes(self._files[artefact.file])
        if artefact.is_sealed:
            return
        stored = self._stored[artefact.file]
        if isinstance(stored, set) and artefact.file.endswith("l"):  # a line may be lost to a crash
            if not found <= stored:
                raise WrongRows(f"{artefact.file} has {found - stored}")
        else:
            expect(found, stored, artefact.file)

    def _identity(self) -> tuple[object, ...]:
        found = JobReader(self._job).identity
        return found, found.levels, found.parallelism, found.key_groups, found.first_epoch

    def _manifest(self) -> object:
        sinks = {"out": hw.connectors.files(self.folder / "out")}
        found = Outbox(JobLayout(self._job).outbox.path, sinks).manifest(5)
        return found, found.is_staged()

    def _status(self) -> object:
        found = JobReader(self._job).status()
        return repr(found), found and (found.positions, found.splits, found.restarts, found.now_ms)


def _shown(line: EpochLine) -> str:
    return repr((line.epoch, line.time_ms, line.duration_ms, line.offset, line.starts, line.stored_bytes, line.steps))
