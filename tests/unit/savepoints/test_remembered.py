"""What a source remembers beside its positions goes where the job goes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.parts.halves import run_epochs

import headwater as hw


class Diary(hw.connectors.Source):
    """Each look at it adds a line to its diary, and what stands at a position is in the diary only."""

    bounded = False

    def __init__(self, author: str = "ann") -> None:
        self._author = author

    def describe(self) -> str:
        return "diary"

    def remember_in(self, folder: Path) -> None:
        self.file = folder / "lines" / "diary.txt"
        self.file.parent.mkdir(exist_ok=True)
        self.file.touch()

    def check(self, schema: hw.Schema) -> None:
        assert self.file.exists()

    def earliest(self) -> dict[str, int]:
        return {"0": 0}

    def latest(self, start: dict[str, int], elapsed_ms: int) -> dict[str, int]:
        with self.file.open("a") as out:
            out.write(self._author + "\n")
        return {"0": len(self.file.read_text().splitlines())}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"line": self.file.read_text().splitlines()[start:end]})


def job(sink: Any, author: str, name: str = "diary") -> hw.Environment:
    env = hw.Environment("diaries", engine="local", checkpoint_interval="1 ms")
    env.source(Diary(author), "line string", name=name).sink(sink)
    return env


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    path: Path = run_epochs(job(hw.connectors.memory(), "ann"), 3).stop(savepoint=tmp_path / "sp")
    return path


def kept_in(savepoint: Path) -> list[str]:
    return (savepoint / "sources" / "diary" / "lines" / "diary.txt").read_text().splitlines()


def test_it_is_there_again_when_a_job_goes_on_from_a_savepoint(savepoint: Path, tmp_path: Path) -> None:
    read = hw.savepoint.read(savepoint).positions["diary"]["0"]
    known = kept_in(savepoint)
    assert known == ["ann"] * len(known)
    assert 3 <= read <= len(known)
    rows = hw.connectors.memory()
    second = run_epochs(job(rows, "bob"), 2, from_=savepoint).stop(savepoint=tmp_path / "second")
    assert [row.line for row in rows.rows][: len(known) - read + 1] == ["ann"] * (len(known) - read) + ["bob"]
    assert kept_in(second)[: len(known) + 1] == [*known, "bob"]


def test_it_follows_a_source_that_is_renamed(savepoint: Path) -> None:
    known, rows = kept_in(savepoint), hw.connectors.memory()
    read = hw.savepoint.read(savepoint).positions["diary"]["0"]
    run_epochs(job(rows, "bob", "journal"), 1, from_=savepoint, renamed={"diary": "journal"})
    assert [row.line for row in rows.rows][: len(known) - read + 1] == ["ann"] * (len(known) - read) + ["bob"]


def test_a_savepoint_based_on_another_carries_it_on(savepoint: Path, tmp_path: Path) -> None:
    hw.savepoint.write(tmp_path / "based", job(hw.connectors.memory(), "ann"), {}, base=savepoint)
    assert kept_in(tmp_path / "based") == kept_in(savepoint)
    run_epochs(job(hw.connectors.memory(), "bob"), 1, from_=tmp_path / "based")


def test_a_savepoint_in_which_it_is_damaged_is_refused(savepoint: Path) -> None:
    file = savepoint / "sources" / "diary" / "lines" / "diary.txt"
    file.write_text(file.read_text().replace("ann", "eve"))
    with pytest.raises(hw.SavepointError, match=r"diary\.txt is damaged: its checksum does not fit"):
        job(hw.connectors.memory(), "bob").run(from_=savepoint)
    file.unlink()
    with pytest.raises(hw.SavepointError, match=r"diary\.txt is damaged: it is missing"):
        job(hw.connectors.memory(), "bob").run(from_=savepoint)


def test_a_savepoint_of_sources_that_remember_nothing_is_as_it_ever_was(tmp_path: Path) -> None:
    env = hw.Environment("rows", engine="local")
    env.from_rows([(1,)], "n int").sink(hw.connectors.memory())
    path = env.run().savepoint(tmp_path / "sp")
    assert "remembered" not in json.loads((path / "savepoint.json").read_text())["content"]


def test_jobs_that_share_a_source_remember_apart() -> None:
    env = hw.Environment("diaries", engine="local", checkpoint_interval="1 ms")
    stream = env.source(Diary(), "line string")
    assert len(stream.collect()) == len(stream.collect()) == 1


@pytest.mark.parametrize(
    "path", ["sources/diary//{outside}", "sources/diary/../../../{name}", "/{outside}", "sources/diary/"]
)
def test_a_savepoint_cannot_have_a_file_written_elsewhere(tmp_path: Path, savepoint: Path, path: str) -> None:
    outside = tmp_path / "outside.txt"
    description = savepoint / "savepoint.json"
    envelope = json.loads(description.read_text())
    (file,) = envelope["content"]["remembered"]["diary"]
    file["path"] = path.format(outside=outside, name=outside.name)
    text = json.dumps(envelope["content"], sort_keys=True, separators=(",", ":"))
    envelope["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    description.write_text(json.dumps(envelope))
    with pytest.raises(hw.HeadwaterError, match=r"savepoint\.json may only name files below"):
        job(hw.connectors.memory(), "bob").run(from_=savepoint)
    assert not outside.exists()
