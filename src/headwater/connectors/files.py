"""Files out: Parquet, JSON lines or CSV in a folder in which every visible row is committed.

Tasks write below `_headwater/`, which readers of folders pass over; a committed file is renamed into the folder under a
name made of sink, epoch and place of origin. `_headwater/manifest.jsonl` lists the published files epoch by epoch.
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from headwater.connectors.contract import Guarantee, Sink, Staged
from headwater.durable import append_line, sync_folder, write_atomically
from headwater.errors import GraphError, PublishError
from headwater.schema import Schema

_EXTENSIONS = {"parquet": "parquet", "json": "jsonl", "csv": "csv"}


class FilesSink(Sink):
    """Publishes by rename; the presence of the final file is the mark that it was published."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, folder: str | os.PathLike[str], format: str = "parquet") -> None:  # noqa: A002  the name users expect
        if format not in _EXTENSIONS:
            raise GraphError.bad_argument("files", f"writes {', '.join(_EXTENSIONS)}", format, "choose one of them")
        self.folder = Path(folder).absolute()
        self.format = format
        self.extension = _EXTENSIONS[format]
        self._uid = ""
        self._mine: dict[str, str] = {}

    def describe(self) -> str:
        return f"{self.format} files in {self.folder}"

    def staging_folder(self, outbox: Path) -> Path:
        return self.folder / "_headwater" / "staging"

    def stage(self, table: pa.Table, path: Path) -> None:
        if self.format == "parquet":
            text = [
                field.name for field in table.schema if pa.types.is_string(field.type) or pa.types.is_binary(field.type)
            ]
            pq.write_table(table, path, compression="zstd", use_dictionary=text)  # numbers seldom repeat enough
        elif self.format == "csv":
            pa_csv.write_csv(_flat(table), path)
        else:
            with path.open("w", encoding="utf-8") as out:
                for row in table.to_pylist(maps_as_pydicts="strict"):
                    out.write(_json_line(row) + "\n")

    def open(self, uid: str, job_id: str, schema: Schema, *, resumed: bool) -> None:
        self._uid = uid
        if self.format == "csv":
            for field in schema.arrow:
                if pa.types.is_nested(field.type):
                    raise GraphError.bad_argument(
                        uid,
                        f"cannot write the nested field {field.name!r} as CSV",
                        str(field.type),
                        "use parquet or json",
                    )
        self._mine = {"job": job_id, "sink": uid}
        owner = self._owner()
        if owner is None:
            self._own(self._mine)
        elif owner != self._mine:
            raise PublishError.folder_of_another_job(uid, str(self.folder), json.dumps(owner), job_id)
        elif not resumed and self._manifest().exists():
            raise PublishError.folder_of_another_job(
                uid, str(self.folder), json.dumps(owner), f"{job_id}, starting anew"
            )

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        owner, mine = self._owner(), {"job": job_id, "sink": uid}
        if owner is None or owner == mine:
            return
        if owner != {"job": before, "sink": uid}:
            raise PublishError.folder_of_another_job(uid, str(self.folder), json.dumps(owner), job_id)
        later = sorted(path.name for path in self.folder.glob(f"{uid}-*") if _epoch_of(path.name, uid) > epoch)
        if later:
            raise PublishError.published_after(uid, str(self.folder), epoch, later[0])
        self._own(mine)

    def _owner(self) -> dict[str, str] | None:
        """The job and sink that the folder belongs to."""
        file = self.folder / "_headwater" / "owner.json"
        return json.loads(file.read_text()) if file.exists() else None

    def _own(self, owner: dict[str, str]) -> None:
        file = self.folder / "_headwater" / "owner.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps(owner).encode())

    def publish(self, epoch: int, files: list[Staged]) -> None:
        if files and self._owner() != self._mine:
            raise PublishError.folder_of_another_job(
                self._uid, str(self.folder), json.dumps(self._owner()), json.dumps(self._mine)
            )
        for file in files:
            final = self.folder / file.name
            if final.exists():
                continue
            try:
                Path(file.path).rename(final)
            except FileNotFoundError:
                raise PublishError.staged_file_missing(self._uid, file.path) from None
        if files:
            sync_folder(self.folder)
            self._record(epoch, files)

    def _record(self, epoch: int, files: list[Staged]) -> None:
        entry = {"epoch": epoch, "files": [{"name": f.name, "rows": f.rows, "bytes": f.size_bytes} for f in files]}
        line = json.dumps(entry, sort_keys=True)
        if line not in _lines_from_end(self._manifest()):
            append_line(self._manifest(), line)

    def _manifest(self) -> Path:
        return self.folder / "_headwater" / "manifest.jsonl"


def _epoch_of(name: str, uid: str) -> int:
    """The epoch in the name of a published file; -1 for another file."""
    digits = name.removeprefix(f"{uid}-")[:10]
    return int(digits) if digits.isdigit() else -1


def _lines_from_end(path: Path, tail_bytes: int = 1 << 16) -> list[str]:
    """The last whole lines of a file; enough to see whether the newest epoch is recorded."""
    if not path.exists():
        return []
    with path.open("rb") as source:
        source.seek(max(0, path.stat().st_size - tail_bytes))
        return source.read().decode(errors="replace").splitlines()


def _flat(table: pa.Table) -> pa.Table:
    columns = [pc.cast(c, pa.string()) if pa.types.is_duration(c.type) else c for c in table.columns]
    return pa.table(columns, names=table.column_names)


def _json_line(row: dict[str, object]) -> str:
    try:
        return json.dumps(row, default=_json_value, ensure_ascii=False, allow_nan=False)
    except ValueError:  # JSON has no NaN and no infinity; as Spark does, they become strings
        return json.dumps(_finite(row), default=_json_value, ensure_ascii=False, allow_nan=False)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _json_value(value: object) -> object:
    """What JSON has no form for: bytes in base64, times in ISO 8601, decimals as strings that keep every digit."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if isinstance(value, dt.date | dt.datetime) else str(value)
