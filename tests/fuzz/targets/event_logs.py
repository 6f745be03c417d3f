"""Topics of the event log that were flushed: segments, their indexes and topic.json."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pyarrow as pa
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.target import Target, expect

from headwater.eventlog import EventLog

_SCHEMA = pa.schema([pa.field("k", pa.string(), nullable=False), pa.field("n", pa.int64())])
_PARTITIONS = 2
_SEGMENT_BYTES = 60_000
_GONE = b"gone"
"""Stands for a file that is not there."""


class EventLogs(Target):
    name = "event-log"
    subjects = ("topic", "log", "segment")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._log = folder / "log"
        topic = EventLog(self._log).create_topic("t", _SCHEMA, partitions=_PARTITIONS, segment_bytes=_SEGMENT_BYTES)
        for number in range(12):
            rows = 3_000 if number % 3 == 1 else number + 1
            table = pa.table(
                {"k": [f"k{n % 9}" for n in range(rows)], "n": range(number, number + rows)}, schema=_SCHEMA
            )
            topic.append(table, partition=number % _PARTITIONS)
        topic.flush()
        self._topic = topic.path
        self._files = {
            path.relative_to(self._topic).as_posix(): path.read_bytes()
            for path in sorted(self._topic.rglob("*"))
            if path.is_file()
        }
        self._small = [name for name, content in self._files.items() if not name.endswith(".segment")]
        self._stored = self._rows()

    def whole(self) -> tuple[str, bytes]:
        return "topic.json", self._files["topic.json"]

    def mutant(self, random: Random) -> tuple[str, bytes]:

        names = list(self._files)
        name = random.choice([*names, "topic.json"])
        how = random.random()
        if how < 0.03:
            return name, _GONE
        if how < 0.06:  # a stray file, such as a copy under another name
            return f"partition-0/{random.choice((0, 1, 7, 4_000, 10**9)):020d}.segment", random.choice(
                list(self._files.values())
            )
        if name == "topic.json" and how < 0.6:
            text = mutated_json(random, json.loads(self._files[name]))
            # Without its checksum it is as topics were before: such a text may say something else.
            return name, (text if '"crc32"' in text else self._files[name].decode()[:-3]).encode()
        others = [content for other, content in self._files.items() if other != name]
        found = self._files[name]
        while found in self._files.values():  # a whole file of another partition is one that somebody has put there
            found = mutated(random, self._files[name], others)
        return name, found

    def read(self, artefact: tuple[str, bytes]) -> None:
        name, content = artefact
        path = self._topic / name
        if content is _GONE:
            path.unlink()
        else:
            path.write_bytes(content)
        try:
            expect(self._rows(), self._stored, f"after {name} has changed, the rows")
        finally:
            if name in self._files:
                path.write_bytes(self._files[name])
            else:
                path.unlink()

    def _rows(self) -> dict[int, object]:
        topic = EventLog(self._log).topic("t")
        found = {p: [batch.to_pydict() for batch in topic.read(p, 0)] for p in range(topic.partitions)}
        return {**found, -1: (topic.start_offsets(), topic.end_offsets(), topic.schema, topic.retention)}
