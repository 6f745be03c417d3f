"""Payloads between levels, and the reports of tasks. The bytes of rows are summed up by Spark, and in records."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.target import Target, WrongRows, expect

from headwater.connectors.contract import Staged
from headwater.data.batch import Batch, timestamp_array
from headwater.epoch.reports import TaskReport
from headwater.task.counters import StepCounters
from headwater.task.payload import EpochFacts, Payload, decode_payload, encode_payload, level_of

_ROWS = pa.table({"k": ["a", None, "c"], "n": [1, 2, None]})
_BATCH = Batch(_ROWS, timestamp_array([1, 2, 3]), pa.array(["a", None, "c"]))
_ARROW = b"\xff\xff\xff\xff"
"""How an Arrow stream begins."""
_PAYLOADS = (
    Payload(1, 0, "rows/0", 0, EpochFacts(7, 1_000), None, _BATCH),
    Payload(1, 0, "rows/0", 1, EpochFacts(7, 1_000), 990, None, idle=True),
    Payload(3, 2, "left/11", 12, EpochFacts(123, 1_794_830_529_076, 500), -1, _BATCH, combined=True, side=1),
)


class Payloads(Target):
    name = "payload"
    subjects = ("rows between two levels",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stored = [encode_payload(payload) for payload in _PAYLOADS]

    def whole(self) -> tuple[int, bytes]:
        return 0, self._stored[0]

    def mutant(self, random: Random) -> tuple[int, bytes]:
        """Damage before the rows, or another number of bytes in them."""
        number = random.randrange(len(self._stored))
        data = self._stored[number]
        rows = data.index(_ARROW) if _ARROW in data else len(data)
        if random.random() < 0.8:
            return number, mutated(random, data[:rows], [other[:rows] for other in self._stored]) + data[rows:]
        cut = random.randrange(len(data))
        return number, random.choice((data[:cut], data + data[cut:], data[:cut] + data))

    def read(self, artefact: tuple[int, bytes]) -> None:
        number, data = artefact
        found = decode_payload(data)
        if data in self._stored:  # by a splice it has become another one, whole
            number = self._stored.index(data)
        expect(_facts(found), _facts(_PAYLOADS[number]), "the payload")
        expect(level_of(data), _PAYLOADS[number].level, "the level")


class Reports(Target):
    name = "report"
    subjects = ("rows between two levels", "the report of a task")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stored = [_report(number).to_bytes() for number in range(3)]
        self._reports = [TaskReport.from_bytes(stored) for stored in self._stored]

    def whole(self) -> tuple[int, bytes]:
        return 0, self._stored[0]

    def mutant(self, random: Random) -> tuple[int, bytes]:
        number = random.randrange(len(self._stored))
        return number, mutated(random, self._stored[number], self._stored)

    def read(self, artefact: tuple[int, bytes]) -> None:
        number, data = artefact
        found = TaskReport.from_bytes(data)
        if found not in self._reports:
            raise WrongRows(f"the report is {found}, not {self._reports[number]}")


def _report(number: int) -> TaskReport:
    return TaskReport(
        (Staged("out", f"/staging/{number}", f"out-{number}", 3, 40),) * number,
        {"count": StepCounters(7, 3, 100 + number, {"n": 2}, {"late_dropped": 1})},
        {"rows": {"0": 10 + number}},
        {"rows": {"0": 7}},
        now_ms=5,
    )


def _facts(payload: Payload) -> tuple[object, ...]:
    batch = payload.batch
    rows = None if batch is None else (batch.table.to_pylist(), batch.timestamps.tolist(), batch.key.to_pylist())
    facts = (payload.level, payload.port, payload.channel, payload.sequence, payload.facts, payload.watermark_ms)
    return (*facts, payload.idle, payload.combined, payload.side, rows)
