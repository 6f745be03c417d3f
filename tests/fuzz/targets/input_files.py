"""Files that `read_files` finds: JSON lines, CSV and Parquet, plain and packed, whoever wrote them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tests.fuzz.byte_mutations import mutated
from tests.fuzz.json_mutations import mutated_json
from tests.fuzz.json_rows import ROWS, SCHEMA, judge, said
from tests.fuzz.target import Target, WrongRows, expect

import headwater as hw
from headwater.data.schema import Schema

_PACKED = {"": lambda data: data, ".gz": lambda data: gzip.compress(data, mtime=0), ".bz2": bz2.compress}
_FLAT = pa.schema([("k", pa.string()), ("n", pa.int64()), ("x", pa.float64()), ("b", pa.bool_())])
_TABLE = pa.table(
    {
        "k": ["a", None, 'ü"x,\n', ""],
        "n": [1, -5, None, 2**53 + 1],
        "x": [0.5, None, -1e300, 3.0],
        "b": [True, False, None, True],
    },
    _FLAT,
)


class _InputFiles(Target):
    """A file of a folder, read as a job does that finds it; the name says how it is packed."""

    subjects = (" cannot be read", "column ", "type ", "schema", "field ")
    format: str
    schema: pa.Schema

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._input, self._remembered = folder / "input", folder / "remembered"
        self._input.mkdir()
        self._remembered.mkdir()

    def whole(self) -> tuple[str, bytes]:
        return "", self.content()

    def content(self) -> bytes:
        """A file as it is written by others."""
        raise NotImplementedError

    def read(self, artefact: tuple[str, bytes]) -> None:
        packed, data = artefact
        path = self._input / f"part.{self.format}{packed}"
        path.write_bytes(data)
        try:
            source = hw.connectors.read_files(self._input, format=self.format, watch=False, settle="0 s")
            source.remember_in(self._remembered)
            source.check(Schema(self.schema))
            end = source.latest(source.earliest(), 0)["0"]
            rows = [
                row for batch in source.read("0", 0, end) if isinstance(batch, pa.RecordBatch) for row in _listed(batch)
            ]
            self.judge(rows, packed, data)
        finally:
            path.unlink()
            for left in self._remembered.iterdir():
                left.unlink()

    def judge(self, rows: list[dict[str, Any]], packed: str, data: bytes) -> None:
        """What was read is what the file says."""
        raise NotImplementedError


class JsonFiles(_InputFiles):
    name = "json-file"
    format, schema = "json", SCHEMA

    def content(self) -> bytes:
        return b"".join(json.dumps(row).encode() + b"\n" for row in ROWS)

    def mutant(self, random: Random) -> tuple[str, bytes]:
        packed = random.choice(list(_PACKED))
        if random.random() < 0.5:
            texts = [json.dumps(row, ensure_ascii=False) for row in ROWS]
            at = random.randrange(len(ROWS))
            texts[at] = mutated_json(random, ROWS[at], ROWS)
            return packed, _PACKED[packed]("\n".join(texts).encode(errors="surrogatepass"))
        if random.random() < 0.5:
            return packed, _PACKED[packed](mutated(random, self.content()))
        return packed, mutated(random, _PACKED[packed](self.content()))

    def judge(self, rows: list[dict[str, Any]], packed: str, data: bytes) -> None:
        lines = [line for line in _unpacked(packed, data).split(b"\n") if line.strip()]
        judge(rows, [row for line in lines for row in said(line.decode())], "the file")


class CsvFiles(_InputFiles):
    name = "csv-file"
    format, schema = "csv", _FLAT

    def content(self) -> bytes:
        return b'k,n,x,b\na,1,0.5,true\n,-5,,false\n"\xc3\xbc""x,\n",,-1e300,\n"",9007199254740993,3,1\n'

    def mutant(self, random: Random) -> tuple[str, bytes]:
        packed = random.choice(list(_PACKED))
        if random.random() < 0.7:
            return packed, _PACKED[packed](mutated(random, self.content()))
        return packed, mutated(random, _PACKED[packed](self.content()))

    def judge(self, rows: list[dict[str, Any]], packed: str, data: bytes) -> None:
        """Beside Python's own reader, which knows no types: fields of the same text, as many, in their columns."""
        lines = list(
            csv.reader(
                io.StringIO(_unpacked(packed, data).decode(errors="replace").replace("\0", "\ufffe"), newline="")
            )
        )
        lines = [line for line in lines if line]
        if not lines:
            expect(rows, [], "the file")
            return
        names = lines[0]
        expect(len(rows), len(lines) - 1, "the number of rows")
        for row, line in zip(rows, lines[1:], strict=True):
            for name in _FLAT.names:
                text = line[names.index(name)].replace("\ufffe", "\0") if name in names else ""
                if not _is_said(row[name], text):
                    raise WrongRows(f"{name} is {text!r}, and {row[name]!r} was read")


class ParquetFiles(_InputFiles):
    """Pages have checksums here, as few writers write them; the footer never has one, so a file says what it says."""

    name = "parquet-file"
    format, schema = "parquet", _FLAT

    def content(self) -> bytes:
        out = io.BytesIO()
        pq.write_table(_TABLE, out, write_page_checksum=True, row_group_size=2)
        return out.getvalue()

    def mutant(self, random: Random) -> tuple[str, bytes]:
        return "", mutated(random, self.content())

    def judge(self, rows: list[dict[str, Any]], packed: str, data: bytes) -> None:
        """As Arrow reads it, in the types of the job."""
        file = pq.ParquetFile(pa.BufferReader(data))
        table = file.read([name for name in _FLAT.names if name in file.schema_arrow.names])
        given = [{name: _text(row.get(name)) for name in _FLAT.names} for row in table.to_pylist()]
        expect(len(rows), len(given), "the number of rows")
        for row, one in zip(rows, given, strict=True):
            for name in _FLAT.names:
                if row[name] != one[name] and not _is_nan(row[name], one[name]):
                    raise WrongRows(f"{name} is {one[name]!r}, and {row[name]!r} was read")


def _listed(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    batch.validate(full=True)
    return batch.to_pylist()  # type: ignore[no-any-return]


def _text(value: object) -> object:
    """Text, which a file may call bytes."""
    return value.decode() if isinstance(value, bytes) else value


def _unpacked(packed: str, data: bytes) -> bytes:
    with pa.input_stream(pa.BufferReader(data), compression={"": None, ".gz": "gzip", ".bz2": "bz2"}[packed]) as source:
        return bytes(source.read())


def _is_nan(one: object, other: object) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)


def _is_said(value: object, text: str) -> bool:
    """Whether a value is what a field of CSV says."""
    if value is None:
        return text == ""
    if isinstance(value, bool):
        return text.lower() in (("1", "true") if value else ("0", "false"))
    if isinstance(value, int):
        return int(text, 16 if text.lower().startswith("0x") else 10) == value
    if isinstance(value, float):
        return math.isnan(value) == math.isnan(float(text)) and (math.isnan(value) or float(text) == value)
    return value == text
