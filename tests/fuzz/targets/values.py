"""Values of records, as Kafka brings them: one among others that are sound, which it must leave as they are."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from random import Random
from typing import Any

import fastavro
import pyarrow as pa
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.json_rows import ROWS, SCHEMA, judge, said
from tests.fuzz.target import Target, expect

from headwater.connectors.formats import AvroFormat, CsvFormat, Format, JsonFormat, numbered_rows

_FLAT = pa.schema([("k", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
_AVRO = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "k", "type": ["null", "string"]},
        {"name": "n", "type": "long"},
        {"name": "x", "type": "double"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "m", "type": {"type": "map", "values": "int"}},
    ],
}
_AVRO_ROWS: list[dict[str, Any]] = [
    {"k": "a", "n": 1, "x": 0.5, "tags": ["p", "q"], "m": {"u": 1}},
    {"k": None, "n": -(2**62), "x": -1e300, "tags": [], "m": {}},
]


class Undecoded(Exception):
    """The value was put aside, with a reason."""


class _Values(Target):
    refusals = (Undecoded,)
    subjects = ("value: ",)
    format: Format
    schema: pa.Schema

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._sound = self.sound()
        self._stored = self._rows(self._sound)

    def sound(self) -> list[bytes]:
        """Values that are whole."""
        raise NotImplementedError

    def whole(self) -> bytes:
        return self._sound[0]

    def mutant(self, random: Random) -> bytes:
        return mutated(random, random.choice(self._sound), self._sound)

    def read(self, artefact: bytes) -> None:
        values = [self._sound[0], artefact, self._sound[-1]]
        reasons, rows = [], []
        for found in numbered_rows(list(enumerate(values)), self.format, self.schema):
            if isinstance(found, pa.RecordBatch):
                found.validate(full=True)
                rows += found.to_pylist()
            else:
                (number, _), reason = found
                expect(number, 1, "the value that was put aside")
                reasons.append(reason)
        first, *between, last = rows
        expect(repr([first, last]), repr([self._stored[0], self._stored[-1]]), "what is beside the value")
        if reasons:
            raise Undecoded(f"value: {reasons[0]}")
        self.judge(between, artefact)

    def judge(self, rows: list[dict[str, Any]], value: bytes) -> None:
        """What was read is what the value says."""
        raise NotImplementedError

    def _rows(self, values: list[bytes]) -> list[dict[str, Any]]:
        return self.format.decode(values, self.schema).to_pylist()  # type: ignore[no-any-return]


class JsonValues(_Values):
    name = "json-value"
    format, schema = JsonFormat(), SCHEMA

    def sound(self) -> list[bytes]:
        return [json.dumps(row).encode() for row in ROWS]

    def mutant(self, random: Random) -> bytes:
        if random.random() < 0.5:
            return super().mutant(random)
        return mutated_json(random, random.choice(ROWS), ROWS).encode()

    def judge(self, rows: list[dict[str, Any]], value: bytes) -> None:
        judge(rows, said(value.decode()), "the value")


class CsvValues(_Values):
    name = "csv-value"
    format, schema = CsvFormat(), _FLAT

    def sound(self) -> list[bytes]:
        return [b"a,1,0.5", b'"\xc3\xbc""x,",,-1e300', b"x,9007199254740993,"]

    def judge(self, rows: list[dict[str, Any]], value: bytes) -> None:
        (line,) = csv.reader(io.StringIO(value.decode().rstrip("\r\n").replace("\0", "\ufffe"), newline=""))
        (row,) = rows
        texts = [text.replace("\ufffe", "\0") for text in line]
        numbers = [None if not text else of(text) for of, text in zip((_whole, float), texts[1:], strict=True)]
        expect(repr([row["k"] or "", row["n"], row["x"]]), repr([texts[0], *numbers]), "the line")


class AvroValues(_Values):
    name = "avro-value"
    format = AvroFormat(_AVRO)
    schema = pa.schema([*_FLAT, ("tags", pa.list_(pa.string())), ("m", pa.map_(pa.string(), pa.int32()))])

    def sound(self) -> list[bytes]:
        return [_written(row) for row in _AVRO_ROWS]

    def judge(self, rows: list[dict[str, Any]], value: bytes) -> None:
        """Avro has no checksum: a value is what fastavro reads, which gives a value back that reads the same."""
        record = fastavro.schemaless_reader(io.BytesIO(value), fastavro.parse_schema(_AVRO), None)
        again = fastavro.schemaless_reader(io.BytesIO(_written(record)), fastavro.parse_schema(_AVRO), None)
        (row,) = rows
        for said_so in (record, again):
            expect(repr({**row, "m": dict(row["m"])}), repr({name: said_so[name] for name in row}), "the record")


def _whole(text: str) -> int:
    return int(text, 16 if text.lower().startswith("0x") else 10)


def _written(row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(_AVRO), row)
    return out.getvalue()
