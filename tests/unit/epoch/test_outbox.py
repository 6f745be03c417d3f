from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Sink, Staged
from headwater.data.batch import Batch
from headwater.epoch.manifest import Manifest
from headwater.epoch.outbox import Outbox, stage
from headwater.plan.plan import JobPlan, plan_job


def manifest(epoch: int, files: Iterable[Staged] = ()) -> Manifest:
    return Manifest.of(epoch, files, end=False, positions={"rows": {"0": 3}}, now_ms=0)


def batch(*values: int) -> Batch:
    return Batch(pa.table({"n": pa.array(values, pa.int64())}), np.zeros(len(values), np.int64))


@pytest.fixture
def sink(tmp_path: Path) -> Sink:
    sink = hw.connectors.files(tmp_path / "out", format="json")
    sink.open("sink", "job", hw.Schema.of("n long"), resumed=False)
    return sink


@pytest.fixture
def plan(sink: Sink) -> JobPlan:
    env = hw.Environment("outbox", engine="local")
    env.from_rows([], "n long").sink(sink)
    return plan_job(env.graph, 1, 128)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "outbox").mkdir()
    return tmp_path / "outbox"


@pytest.fixture
def outbox(folder: Path, sink: Sink) -> Outbox:
    return Outbox(folder, {"sink": sink})


def staged_names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "out" / "_headwater" / "staging").iterdir())


def test_an_epoch_that_is_closed_is_recorded_and_leaves_nothing(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox
) -> None:
    files = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1, 2), batch(3)]})
    assert [file.rows for file in files] == [3]
    outbox.write_manifest(manifest(0, files))
    assert (outbox.pending(), outbox.published) == ([0], -1)
    outbox.close(0)
    again = Outbox(folder)
    assert (again.pending(), again.published, staged_names(tmp_path)) == ([], 0, [])
    assert again.progress.positions == {"rows": {"0": 3}}


def test_an_epoch_that_cannot_be_recorded_is_not_closed(
    plan: JobPlan, folder: Path, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError("no space left")

    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})))
    monkeypatch.setattr("headwater.versioned.write_atomically", full)
    with pytest.raises(OSError, match="no space left"):
        outbox.close(0)
    assert (outbox.pending(), outbox.published, outbox.manifest(0).is_staged()) == ([0], -1, True)


def test_an_epoch_that_sinks_have_is_computed_again_without_a_trace(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox
) -> None:
    for epoch in (0, 1):
        outbox.write_manifest(manifest(epoch, stage(plan, folder, epoch, "l1-0000", {"sink": [batch(epoch)]})))
        outbox.close(epoch)
    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0001", {"sink": [batch(7)]})))
    assert (outbox.pending(), outbox.published, staged_names(tmp_path)) == ([], 1, [])


def test_an_epoch_is_staged_while_all_its_files_are_there(plan: JobPlan, folder: Path) -> None:
    files = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})
    assert manifest(0, files).is_staged()
    Path(files[0].path).unlink()
    assert not manifest(0, files).is_staged()


def test_a_second_attempt_replaces_the_first(tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox) -> None:
    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})))
    second = stage(plan, folder, 0, "l1-0000", {"sink": [batch(2)]})
    outbox.write_manifest(manifest(0, second))
    assert len(staged_names(tmp_path)) == 2
    assert [file.path for file in outbox.manifest(0).files] == [file.path for file in second]
    outbox.close(0)
    assert staged_names(tmp_path) == []


def test_an_epoch_that_was_not_committed_is_discarded_with_its_files(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox
) -> None:
    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})))
    outbox.write_manifest(manifest(1, stage(plan, folder, 1, "l1-0000", {"sink": [batch(2)]})))
    stage(plan, folder, 2, "l1-0000", {"sink": [batch(3)]})  # no manifest names it
    outbox.discard(1)
    outbox.remove_orphans()
    assert outbox.pending() == [0]
    assert [name[:10] for name in staged_names(tmp_path)] == ["0000000000"]


def test_files_are_in_the_order_of_their_places(plan: JobPlan, folder: Path, outbox: Outbox) -> None:
    files = [
        f for place in ("l1-0001", "l1-0000") for f in stage(plan, folder, 0, place, {"sink": [batch(int(place[-1]))]})
    ]
    outbox.write_manifest(manifest(0, files))
    assert [f.name for f in outbox.manifest(0).files] == [
        "sink-0000000000-l1-0000.jsonl",
        "sink-0000000000-l1-0001.jsonl",
    ]


def test_a_damaged_manifest_is_told(folder: Path, outbox: Outbox) -> None:
    outbox.write_manifest(manifest(0))
    (folder / "manifest-0000000000.json").write_text('{"epoch": 0, "fi')
    with pytest.raises(hw.JobError, match=r"manifest-0000000000\.json cannot be read"):
        outbox.manifest(0)


def test_what_cannot_be_staged_is_told_with_the_sink_and_leaves_no_file(
    tmp_path: Path, plan: JobPlan, folder: Path, sink: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(table: pa.Table, path: Path) -> None:
        path.write_text("half")
        raise OSError("no space left")

    monkeypatch.setattr(sink, "stage", full)
    with pytest.raises(hw.PublishError, match=r"'sink' could not publish epoch 0: staging in .* failed: no space left"):
        stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})
    assert staged_names(tmp_path) == []


def test_a_manifest_names_no_file_but_those_its_sink_has_staged(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox, sink: Sink
) -> None:
    secret = tmp_path / "secret.parquet"
    secret.write_text("mine")
    (file,) = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})
    outbox.write_manifest(manifest(0, [replace(file, path=str(secret))]))
    with pytest.raises(hw.PublishError, match="secret"):
        sink.publish(0, list(outbox.manifest(0).files))
    outbox.write_manifest(manifest(0, [replace(file, name="../seen.parquet")]))
    with pytest.raises(hw.UnsafePath, match="epoch 0 may only name files below"):
        sink.publish(0, list(outbox.manifest(0).files))
    assert secret.exists()
    assert not (tmp_path / "seen.parquet").exists()


def test_files_are_published_after_the_folders_were_moved(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox, sink: Sink
) -> None:
    files = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})
    outbox.write_manifest(manifest(0, [replace(file, path=f"/elsewhere/{Path(file.path).name}") for file in files]))
    sink.publish(0, list(outbox.manifest(0).files))
    assert [path.name for path in (tmp_path / "out").glob("sink-*")] == [files[0].name]
