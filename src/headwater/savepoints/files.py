"""The files of a savepoint: Parquet for each state and subtask, and `savepoint.json`, written last, that names them all.

A savepoint is complete when its description is there. The description carries a checksum of itself and one of every file.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headwater.durable import PRIVATE_FOLDER, sync_folder, write_atomically
from headwater.epoch.offset import Offset
from headwater.job.layout import JobLayout
from headwater.savepoints.errors import SavepointError
from headwater.shapes import fits, misfit
from headwater.state.keys import are_sizes
from headwater.state.spread import Spread
from headwater.state.table import PUT
from headwater.stored_paths import below

FORMAT = 1
DESCRIPTION = "savepoint.json"
_BEGUN = "incomplete"
"""The file in a folder that a savepoint is being written to."""
_STATE = "state"
"""The folder of the tables."""
GROUP, SUBTASK = "@key_group", "@subtask"
"""The columns of a saved table besides those of the state: where a row belongs, and which subtask had it."""
_OPS = ("op", "@op")
"""What a row of a change table does; all rows of a saved table are puts."""
DECLARED = ("states", "broadcast states")
"""The facts of a step that name the states that users declare."""
Place = tuple[str, str, int]
"""A step's uid, its state, and a subtask."""


@dataclass(frozen=True)
class SavedFile:
    """One Parquet file: the entries of a state on one subtask."""

    path: str
    """Below the savepoint's folder."""
    subtask: int
    rows: int
    size_bytes: int
    sha256: str
    groups: tuple[int, int] | None = None
    """The lowest and the highest key group in it; None where entries have none."""
    key: tuple[str, ...] = ()
    """The columns that make the key; none where entries belong to a subtask and not to a key."""


@dataclass(frozen=True)
class SavedStep:
    """What is kept of one step."""

    kept: dict[str, Any]
    """What the step keeps, in words; the program must keep the same."""
    metas: list[dict[str, Any]]
    """By subtask, the facts besides the tables."""
    states: dict[str, list[SavedFile]]
    """By name, of every state; one that is empty has a file without rows, which shows its columns."""

    def rows(self, state: str) -> int:
        """How many entries a state has."""
        return sum(file.rows for file in self.states[state])


@dataclass(frozen=True)
class RememberedFile:
    """One of the files that a source keeps beside its positions."""

    path: str
    """Below the savepoint's folder."""
    size_bytes: int
    sha256: str

    @property
    def name(self) -> str:
        """Below the folder of the source."""
        return self.path.split("/", 2)[-1]


@dataclass(frozen=True)
class Description:
    """What `savepoint.json` says."""

    job: str
    job_id: str
    epoch: int
    parallelism: int
    key_groups: int
    offset: Offset
    """Where the sources stand, and the times of the epoch."""
    graph: str
    """The job graph as text."""
    steps: dict[str, SavedStep] = field(default_factory=dict)
    remembered: dict[str, list[RememberedFile]] = field(default_factory=dict)
    """By source, what it keeps beside its positions; sources that keep nothing are not in it."""

    def files(self) -> Iterator[SavedFile | RememberedFile]:
        """Every file of the savepoint but the one that holds this."""
        for step in self.steps.values():
            for saved in step.states.values():
                yield from saved
        for kept in self.remembered.values():
            yield from kept

    def content(self) -> dict[str, Any]:
        """As it is stored; what no source has kept is not mentioned."""
        content = {**asdict(self), "offset": self.offset.to_json()}
        if not self.remembered:
            del content["remembered"]
        return content


class Savepoint:
    """A complete savepoint, opened. What it gives is checked against the checksums in its description."""

    def __init__(self, path: Path, description: Description, digest: str) -> None:
        self.path, self.description, self.digest = path, description, digest

    @classmethod
    def open(cls, path: Path) -> Savepoint:
        """Read the description; refuse what is missing, incomplete, damaged or of another version."""
        path = path.absolute()
        file = path / DESCRIPTION
        if not path.is_dir():
            raise SavepointError.not_there(path)
        if not file.exists():
            raise _not_a_savepoint(path)
        try:
            envelope = json.loads(file.read_bytes())
            version, content, digest = envelope["format"], envelope["content"], envelope["sha256"]
            is_whole = _digest_of(content) == digest
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise SavepointError.corrupt(file, f"it cannot be read: {error}") from None
        if version != FORMAT:
            raise SavepointError.other_version(path, version, FORMAT)
        if not is_whole:
            raise SavepointError.corrupt(file, "its checksum does not fit")
        try:
            description = _described(content, file)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise SavepointError.corrupt(file, f"it is not a description: {type(error).__name__}: {error}") from None
        savepoint = cls(path, description, digest)
        savepoint._check_files()
        return savepoint

    def of(self, file: SavedFile | RememberedFile) -> Path:
        """Where a file of the savepoint is."""
        return below(self.path, file.path, self.path / DESCRIPTION)

    def _check_files(self) -> None:
        for file in self.description.files():
            path = self.of(file)
            if not path.exists():
                raise SavepointError.corrupt(path, "it is missing")
            if path.stat().st_size != file.size_bytes:
                raise SavepointError.corrupt(path, f"it has {path.stat().st_size} bytes, not {file.size_bytes}")

    @property
    def offset(self) -> Offset:
        return self.description.offset

    def read_schema(self, file: SavedFile) -> pa.Schema:
        """The columns of a file."""
        path = self.of(file)
        try:
            return _with_names(pq.read_schema(path))
        except (OSError, ValueError, pa.ArrowException) as error:
            raise SavepointError.corrupt(path, str(error)) from None

    def read(self, file: SavedFile) -> pa.Table:
        """The entries of a file, with all columns."""
        content = self._content(file)
        try:
            table = pq.read_table(pa.BufferReader(content))
            _with_names(table.schema)
            table.validate(full=True)
            return table
        except (OSError, ValueError, pa.ArrowException) as error:
            raise SavepointError.corrupt(self.of(file), str(error)) from None

    def copy(self, file: SavedFile, folder: Path) -> SavedFile:
        """Put a file into the folder of another savepoint."""
        _write(folder, self.of(file).relative_to(self.path), self._content(file))
        return file

    def _content(self, file: SavedFile) -> pa.Buffer:
        path = self.of(file)
        try:
            with pa.memory_map(str(path)) as source:
                content = source.read_buffer()
        except (OSError, pa.ArrowException) as error:
            raise SavepointError.corrupt(path, str(error)) from None
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise SavepointError.corrupt(path, "its checksum does not fit")
        return content


def write_table(folder: Path, place: Place, table: pa.Table, spread: Spread, groups_count: int) -> SavedFile:
    """Write the entries of a step's state on one subtask, in a task; the name is the attempt's own."""
    uid, state, subtask = place
    kept, groups = entries_of(table), spread.groups(table, groups_count)
    if groups is not None:
        kept = kept.add_column(0, GROUP, pa.array(groups, pa.int32()))
    kept = kept.add_column(0, SUBTASK, pa.array(np.full(len(table), subtask, np.int32)))
    sink = pa.BufferOutputStream()
    pq.write_table(kept, sink, compression="zstd")
    content = sink.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    relative = Path(_STATE) / folder_name(uid) / folder_name(state) / f"{subtask:05d}-{digest[:12]}.parquet"
    _write(folder, relative, content)
    bounds = None if groups is None or not len(groups) else (int(groups.min()), int(groups.max()))
    return SavedFile(relative.as_posix(), subtask, len(table), content.size, digest, bounds, spread.key)


def _write(folder: Path, relative: Path, content: pa.Buffer) -> None:
    path = folder / relative
    try:
        for parent in reversed(relative.parents[:-1]):  # not the folder itself: who removed it has given it up
            (folder / parent).mkdir(exist_ok=True)
        write_atomically(path, content)
    except OSError as error:
        raise SavepointError.failed(folder, f"{path}: {error}") from None


def _with_names(schema: pa.Schema) -> pa.Schema:
    """A schema whose names can be read, as text and apart from each other."""
    if len(set(schema.names)) != len(schema):
        raise ValueError(f"it has columns of the same name: {', '.join(schema.names)}")
    return schema


def entries_of(table: pa.Table) -> pa.Table:
    """The columns of the state alone, of a saved table or a dump."""
    return table.drop_columns([name for name in (SUBTASK, GROUP, *_OPS) if name in table.column_names])


def shown(table: pa.Table, key: Sequence[str]) -> pa.Table:
    """The columns of the state as users see them; of a state without key, the key that all entries share is left out."""
    entries = entries_of(table)
    is_shared = not key and "key" in entries.column_names
    if is_shared and not pa.types.is_struct(entries.schema.field("key").type):
        entries = entries.drop_columns(["key"])
    return entries


def as_puts(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table as changes: with the column, first in the schema if it is there, that says that all rows are puts."""
    if schema.names[0] not in _OPS:
        return table
    return table.add_column(0, schema.field(0), pa.array(np.full(len(table), PUT, np.int8)))


def state_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of a change table without that column."""
    return pa.schema([column for column in schema if column.name not in _OPS])


def _not_a_savepoint(path: Path) -> SavepointError:
    """What a folder without a description is, as far as that can be seen."""
    if JobLayout(path).job.exists():
        return SavepointError.of_a_job(path)
    if (path / "_headwater").is_dir():
        return SavepointError.of_a_sink(path)
    found = sorted(path.iterdir(), key=lambda one: (one.name.startswith("."), one.name))
    if not found:
        return SavepointError.not_there(path)
    if (path / _BEGUN).exists() or (path / _STATE).is_dir():
        return SavepointError.incomplete(path)
    return SavepointError.something_else(path, found[0].name)


def free_folder(path: Path) -> Path:
    """A path at which a savepoint can be taken: nothing is there, or an empty folder."""
    path = path.absolute()
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise SavepointError.taken(path)
    return path


def complete(folder: Path, description: Description) -> Savepoint:
    """Drop what the description does not name, and write it, which makes the savepoint complete."""
    content = description.content()
    named = {below(folder, file.path, folder) for file in description.files()}
    found = sorted(folder.rglob("*"))
    for path in found:
        if path.is_file() and path not in named and path.name != _BEGUN:
            path.unlink()
    for path in [*(path for path in found if path.is_dir()), folder]:
        sync_folder(path)
    envelope = {"format": FORMAT, "sha256": _digest_of(content), "content": content}
    write_atomically(folder / DESCRIPTION, json.dumps(envelope, indent=1, sort_keys=True).encode())
    (folder / _BEGUN).unlink(missing_ok=True)
    return Savepoint.open(folder)


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """A new folder to write a savepoint into; when that fails, nothing is left behind that looks like one."""
    folder = _new_folder(path)
    try:
        yield folder
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, OSError | pa.ArrowException):
            raise SavepointError.failed(folder, str(error)) from None
        raise


def _new_folder(path: Path) -> Path:
    """A folder for a savepoint that nobody else begins; until it is complete, a file in it says that it is not."""
    folder = free_folder(path)
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        (folder / _BEGUN).touch(exist_ok=False)
    except FileExistsError:
        raise SavepointError.taken(folder) from None
    except OSError as error:
        raise SavepointError.failed(folder, str(error)) from None
    return folder


def file_from_json(content: dict[str, Any]) -> SavedFile:
    """A file as `asdict` and JSON give it."""
    groups, key = content["groups"], content["key"]
    return SavedFile(**{**content, "groups": groups and tuple(groups), "key": tuple(key)})


def _described(content: dict[str, Any], file: Path) -> Description:
    steps = {}
    for uid, step in content["steps"].items():
        states = {name: [file_from_json(file) for file in files] for name, files in step["states"].items()}
        steps[uid] = SavedStep(step["kept"], step["metas"], states)
    remembered = {
        uid: [RememberedFile(**file) for file in files] for uid, files in content.get("remembered", {}).items()
    }
    offset = Offset.from_json(content["offset"], str(file))
    found = Description(**{**content, "offset": offset, "steps": steps, "remembered": remembered})
    if (problem := misfit(found)) is not None:
        raise TypeError(problem)
    if not are_sizes(found.parallelism, found.key_groups):
        raise ValueError(f"no job has {found.parallelism} subtasks and {found.key_groups} key groups")
    for step in found.steps.values():
        if not all(step.states.values()):
            raise ValueError("a state is without files")
        declared = [step.kept.get(kind, {}) for kind in DECLARED]
        if not fits(declared, list[dict[str, list[str]]]) or not all(
            words for one in declared for words in one.values()
        ):
            raise TypeError("its states are not declared as states are")
    return found


def _digest_of(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def folder_name(text: str) -> str:
    """A uid or a name of state as that of a folder, which says nothing to a path."""
    return quote(text, safe="@").replace(".", "%2E") if set(text) <= {"."} else quote(text, safe="@")
