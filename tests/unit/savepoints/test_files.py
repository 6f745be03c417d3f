"""Savepoint folders: complete or refused, with the file, the reason and the way out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import run_epochs

import headwater as hw

ROWS = [(f"k{n % 5}", n) for n in range(40)]


class Total(hw.KeyedProcessFunction):
    total = hw.ValueState("bigint", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.total.set(self.total.get() + event.n)
        yield ctx.key, self.total.get()


def job(sink: Any, name: str = "totals", rows: list[Any] = ROWS) -> hw.Environment:
    env = hw.Environment(name, engine="local", max_rows_per_epoch=10)
    keyed = env.from_rows(rows, "k string, n bigint").key_by("k")
    keyed.process(Total(), "k string, n bigint").sink(sink)
    return env


@pytest.fixture
def savepoint(tmp_path: Path) -> Path:
    path = run_epochs(job(hw.connectors.memory()), 2).stop(savepoint=tmp_path / "sp")
    assert path is not None
    return path


def files_of(savepoint: Path) -> list[Path]:
    return sorted(savepoint.rglob("*.parquet"))


def refused(savepoint: Path, match: str) -> None:
    """Nothing is started from it, and nothing is read from it."""
    kept = hw.connectors.memory()
    with pytest.raises(hw.SavepointError, match=match) as error:
        job(kept).run(from_=savepoint)
    assert str(savepoint) in str(error.value)
    assert kept.rows == []


def change(file: Path, changed: Callable[[dict[str, Any]], Any]) -> None:
    content = json.loads(file.read_text())
    changed(content)
    file.write_text(json.dumps(content))


def test_a_savepoint_says_what_it_is(savepoint: Path) -> None:
    content = json.loads((savepoint / "savepoint.json").read_text())
    assert content["format"] == 1
    assert content["content"]["job"] == "totals"
    assert content["content"]["epoch"] == 1
    assert content["content"]["offset"]["positions"] == {"rows": {"0": 20}}
    assert {file.relative_to(savepoint).parts[:3] for file in files_of(savepoint)} == {
        ("state", "total", name) for name in ("total", "@channels", "@timers.event", "@timers.processing")
    }


def test_a_job_goes_on_from_it(savepoint: Path) -> None:
    whole, rest = hw.connectors.memory(), hw.connectors.memory()
    job(whole).run()
    job(rest).run(from_=savepoint)
    assert rest.rows == whole.rows[20:]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere", r"there is no savepoint at .*nowhere; give the folder that job.savepoint")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "there is no savepoint at")


def test_a_savepoint_without_its_description_is_incomplete(savepoint: Path) -> None:
    (savepoint / "savepoint.json").unlink()
    refused(savepoint, r"is incomplete: it has no savepoint\.json, .*take another savepoint")


@pytest.mark.parametrize("how", ["truncated", "flipped", "missing", "empty", "of another"])
def test_a_damaged_table_is_refused(savepoint: Path, how: str) -> None:
    file = next(file for file in files_of(savepoint) if "total/total" in str(file))
    content = file.read_bytes()
    if how == "missing":
        file.unlink()
    elif how == "of another":
        shutil.copy(next(file for file in files_of(savepoint) if "@channels" in str(file)), file)
    else:
        middle = len(content) // 2
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        file.write_bytes({"truncated": content[:-1], "flipped": flipped, "empty": b""}[how])
    refused(savepoint, rf"the savepoint file .*{file.name} is damaged: .*; use a copy of the savepoint or an older one")


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-20],
        lambda text: text.replace('"epoch": 1,', '"epoch": 2,'),
        lambda text: text.replace('"rows": {\n', '"rowz": {\n'),
        lambda text: "",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: text.replace('"sha256": "', '"sha256": "0', 1),
    ],
    ids=["truncated", "number", "name", "empty", "list", "object", "checksum"],
)
def test_a_damaged_description_is_refused(savepoint: Path, damage: Callable[[str], str]) -> None:
    file = savepoint / "savepoint.json"
    text = file.read_text()
    assert damage(text) != text
    file.write_text(damage(text))
    refused(savepoint, r"savepoint\.json is damaged")


def test_no_flipped_bit_of_a_description_is_believed(savepoint: Path) -> None:
    """Whatever the bit, the description is refused or says the same."""
    file = savepoint / "savepoint.json"
    content, said = file.read_bytes(), str(hw.savepoint.read(savepoint))
    for at in range(0, len(content), 7):
        file.write_bytes(content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :])
        try:
            found = str(hw.savepoint.read(savepoint))
        except hw.SavepointError:
            continue
        assert found == said


def test_another_version_is_told_from_damage(savepoint: Path) -> None:
    change(savepoint / "savepoint.json", lambda content: content.update(format=2))
    refused(savepoint, "has format 2, this Headwater reads format 1; use the version that wrote it")


def test_a_savepoint_needs_a_folder_of_its_own(savepoint: Path, tmp_path: Path) -> None:
    done = job(hw.connectors.memory()).run()
    with pytest.raises(hw.SavepointError, match="is there already and not empty"):
        done.savepoint(savepoint)
    with pytest.raises(hw.SavepointError, match="is there already and not empty"):
        done.stop(savepoint=savepoint)
    (tmp_path / "file").touch()
    with pytest.raises(hw.SavepointError, match="is there already"):
        done.savepoint(tmp_path / "file")
    (tmp_path / "made").mkdir()
    assert done.savepoint(tmp_path / "made") == tmp_path / "made"


def test_a_savepoint_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path, monkeypatch: Any) -> None:
    from headwater.savepoints import files

    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    done = job(hw.connectors.memory()).run()
    monkeypatch.setattr(files, "write_atomically", full)
    with pytest.raises(hw.SavepointError, match=r"could not be taken: .*No space left.*nothing of the job has changed"):
        done.savepoint(tmp_path / "sp")
    assert not (tmp_path / "sp").exists()
    monkeypatch.undo()
    done.savepoint(tmp_path / "sp")


def test_names_that_are_no_file_names_are_written_as_such(tmp_path: Path) -> None:
    class Odd(hw.KeyedProcessFunction):
        strange = hw.ValueState("../a/b ä%", "bigint")

        def process(self, event: Any, ctx: hw.Context) -> Any:
            self.strange.set(event.n)
            yield event

    env = hw.Environment("odd", engine="local")
    env.from_rows(ROWS, "k string, n bigint").key_by("k").process(Odd(), "k string, n bigint").with_uid("..").sink(
        hw.connectors.memory()
    )
    path = env.run().savepoint(tmp_path / "sp")
    assert hw.savepoint.read(path)["..", "../a/b ä%"].rows == 5
    assert all(file.is_relative_to(path / "state") for file in files_of(path))
    assert {file.name for file in tmp_path.iterdir()} == {"sp"}
