"""What connectors keep in JSON: whose an output is, what is held back, which files and batches came, what was sent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.target import Target, expect

import headwater as hw
from headwater.connectors.batches import Batches
from headwater.connectors.files.ledger import FoundFile, Ledger
from headwater.connectors.files.sink import FilesSink
from headwater.connectors.kafka.marker import Marker, Note
from headwater.connectors.kafka.send_errors import SendError

_MARKER = Marker("dd13", 41, "ee14", "cc12", 40)
_SCHEMA = hw.Schema.of("n long")


@dataclass(frozen=True)
class _Mutant:
    name: str
    content: bytes
    is_sealed: bool
    """Whether nothing could tell that it is another one: it has no checksum."""


class ConnectorNotes(Target):
    name = "connector-notes"
    refusals = (hw.HeadwaterError, SendError)
    subjects = (
        "owner.json",
        "held",
        "names",
        "ledger",
        "files.jsonl",
        "batch",
        "sent-out",
        "marker",
        "topic.json",
        "topic",
        "staged file",
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._work, self._kept = folder / "work", folder / "kept"
        self._make()
        shutil.copytree(self._work, self._kept)
        self._readers: dict[str, Callable[[], Any]] = {
            "out/_headwater/owner.json": lambda: self._sink()._owner(),
            "out/_headwater/held.jsonl": self._held,
            "files.jsonl": self._ledger,
            "batches/0000000000.json": lambda: list(Batches(self._work).read(0, slice(None))),
            "sent-out.json": lambda: self._note().epoch(),
            "marker.json": lambda: Marker.read(42, (self._work / "marker.json").read_text(errors="replace")),
            "log/t/topic.json": lambda: hw.EventLog(self._work / "log").topic("t").schema,
        }
        self._files = {name: (self._work / name).read_bytes() for name in self._readers}
        self._stored = {name: read() for name, read in self._readers.items()}

    def _make(self) -> None:
        env = hw.Environment("notes", engine="local", max_rows_per_epoch=1)
        out = hw.connectors.files(self._work / "out", format="json", partition_by=["k"], roll_bytes=1 << 20)
        rows = env.from_rows([("a", 1), ("b", 2)], "k string, n long")
        rows.sink(out, name="out")
        out.flush = lambda: None  # type: ignore[method-assign]  what is held stays so
        out.at_epoch = lambda now_ms, *, ended: None  # type: ignore[method-assign]
        env.run()
        batches = Batches(self._work)
        part = pa.RecordBatch.from_pydict({"n": [1, 2]}, schema=_SCHEMA.arrow)
        batches.complete(0, [batches.put_part(0, 0, [part], _SCHEMA.arrow)])
        Ledger(self._work / "files.jsonl", 1).add([FoundFile("a", 3, 5), FoundFile("b/c", 4, 6)], close=True)
        self._note().write(41)
        (self._work / "marker.json").write_text(_MARKER.metadata)
        hw.EventLog(self._work / "log").create_topic("t", _SCHEMA.arrow)

    def whole(self) -> _Mutant:
        return _Mutant("sent-out.json", self._files["sent-out.json"], is_sealed=False)

    def mutant(self, random: Random) -> _Mutant:
        name = random.choice(list(self._files))
        content = self._files[name]
        has_sum = b"crc32" in content
        if random.random() < 0.4:
            return _Mutant(name, mutated(random, content, list(self._files.values())), is_sealed=not has_sum)
        lines = content.splitlines() if name.endswith("l") else [content]
        at = random.randrange(len(lines))
        document = json.loads(lines[at])
        is_sealed = not has_sum or random.random() < 0.6
        if is_sealed:
            document.pop("crc32", None)
        lines[at] = mutated_json(random, document, [json.loads(line) for line in lines]).encode()
        is_sealed = is_sealed or b"crc32" not in lines[at]  # a mutation may take it away, too
        return _Mutant(name, b"\n".join(lines) + b"\n" * name.endswith("l"), is_sealed)

    def read(self, artefact: _Mutant) -> None:
        path = self._work / artefact.name
        path.write_bytes(artefact.content)
        try:
            found = self._readers[artefact.name]()
        finally:
            shutil.rmtree(self._work)
            shutil.copytree(self._kept, self._work)
        if not artefact.is_sealed and not artefact.name.endswith("l"):  # a line may be lost to a crash
            expect(found, self._stored[artefact.name], artefact.name)

    def _sink(self) -> FilesSink:
        sink = hw.connectors.files(self._work / "out", format="json", partition_by=["k"], roll_bytes=1 << 20)
        sink._be("out")
        return sink

    def _held(self) -> list[str]:
        held = self._sink()._held
        assert held is not None
        held.open()
        held.roll_all()
        return sorted(path.name for path in (self._work / "out").glob("k=*/*.jsonl"))

    def _ledger(self) -> list[FoundFile]:
        ledger = Ledger(self._work / "files.jsonl", 1)
        return [*ledger.catch_up(), *(ledger.file(number) for number in range(len(ledger)))]

    def _note(self) -> Note:
        return Note(str(self._work / "0000000041-out"), "out", "dd13", "orders")
