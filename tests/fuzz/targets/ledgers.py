"""The ledger of `read_files`, by which files that were read are read again in the same order."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pyarrow as pa
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.target import Target, expect

import headwater as hw
from headwater.data.schema import Schema

_FILES = 3
_SCHEMA = Schema.of("n bigint")


class Ledgers(Target):
    """A job goes on from positions that it has committed: what it reads again up to there must be what it was."""

    name = "ledger"
    subjects = ("ledger", "cannot be read")

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._input, self._remembered = folder / "input", folder / "remembered"
        self._input.mkdir()
        self._remembered.mkdir()
        for number in range(_FILES):
            path = self._input / f"{number}.json"
            path.write_text(f'{{"n": {number}}}\n' * (number + 1))
            os.utime(path, ns=(10**18 + number, 10**18 + number))
        source = self._source()
        source.latest(source.earliest(), 0)
        self._ledger = self._remembered / "files.jsonl"
        self._content = self._ledger.read_bytes()
        self._stored = self._rows()

    def _source(self) -> hw.connectors.Source:
        source = hw.connectors.read_files(self._input, format="json", watch=False)
        source.remember_in(self._remembered)
        source.check(_SCHEMA)
        return source

    def whole(self) -> bytes:
        return self._content

    def mutant(self, random: Random) -> bytes:
        lines = self._content.splitlines()
        if random.random() < 0.5:
            return mutated(random, self._content)
        at = random.randrange(len(lines))
        documents = [json.loads(line) for line in lines]
        lines[at] = mutated_json(random, documents[at], documents).encode()
        return b"\n".join(lines) + b"\n"

    def read(self, artefact: bytes) -> None:
        self._ledger.write_bytes(artefact)
        try:
            expect(self._rows(), self._stored, "what is read again")
        finally:
            self._ledger.write_bytes(self._content)

    def _rows(self) -> list[object]:
        batches = list(self._source().read("0", 0, _FILES))
        assert all(isinstance(batch, pa.RecordBatch) for batch in batches)
        return [batch.to_pylist() for batch in batches if isinstance(batch, pa.RecordBatch)]
