from __future__ import annotations

import json
from collections.abc import Iterable
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
from headwater.epoch.steps import EpochStep, ignore_steps
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
    return Outbox(folder, {"sink": sink}, ignore_steps)


def published(tmp_path: Path) -> list[int]:
    files = sorted((tmp_path / "out").glob("*.jsonl"))
    return [json.loads(line)["n"] for path in files for line in path.read_text().splitlines()]


def staged_names(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in (tmp_path / "out" / "_headwater" / "staging").iterdir())


def test_an_epoch_is_seen_only_after_it_is_published(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox
) -> None:
    files = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1, 2), batch(3)]})
    assert [file.rows for file in files] == [3]
    outbox.write_manifest(manifest(0, files))
    assert published(tmp_path) == []
    outbox.publish(0)
    assert published(tmp_path) == [1, 2, 3]
    assert staged_names(tmp_path) == []
    assert (outbox.pending(), outbox.published) == ([], 0)


def test_the_steps_of_publication_are_told_in_order(plan: JobPlan, folder: Path, sink: Sink) -> None:
    told: list[tuple[EpochStep, int]] = []
    outbox = Outbox(folder, {"sink": sink}, lambda step, epoch: told.append((step, epoch)))
    outbox.write_manifest(manifest(4, stage(plan, folder, 4, "s0000", {"sink": [batch(1)]})))
    outbox.publish(4)
    assert told == [(EpochStep.PUBLISHING, 4), (EpochStep.PUBLISHED, 4), (EpochStep.CLEANED, 4)]


@pytest.mark.parametrize("died_at", [EpochStep.PUBLISHING, EpochStep.PUBLISHED, EpochStep.CLEANED])
def test_publishing_an_epoch_again_changes_nothing(
    tmp_path: Path, plan: JobPlan, folder: Path, sink: Sink, died_at: EpochStep
) -> None:
    def die(step: EpochStep, epoch: int) -> None:
        if step == died_at:
            raise KeyboardInterrupt

    dying = Outbox(folder, {"sink": sink}, die)
    dying.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0000", {"sink": [batch(1, 2)]})))
    with pytest.raises(KeyboardInterrupt):
        dying.publish(0)
    again = Outbox(folder, {"sink": sink}, ignore_steps)
    for epoch in again.pending():
        again.publish(epoch)
    assert published(tmp_path) == [1, 2]
    assert again.published == 0
    assert again.progress.positions == {"rows": {"0": 3}}
    lines = (tmp_path / "out" / "_headwater" / "manifest.jsonl").read_text().splitlines()
    assert len(lines) == 1


def test_an_epoch_that_sinks_have_is_computed_again_without_a_trace(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox
) -> None:
    for epoch in (0, 1):
        outbox.write_manifest(manifest(epoch, stage(plan, folder, epoch, "l1-0000", {"sink": [batch(epoch)]})))
        outbox.publish(epoch)
    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0001", {"sink": [batch(7)]})))
    assert (outbox.pending(), outbox.published, staged_names(tmp_path)) == ([], 1, [])
    assert published(tmp_path) == [0, 1]


def test_an_epoch_is_staged_while_all_its_files_are_there(plan: JobPlan, folder: Path) -> None:
    files = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})
    assert manifest(0, files).is_staged()
    Path(files[0].path).unlink()
    assert not manifest(0, files).is_staged()


def test_a_second_attempt_replaces_the_first(tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox) -> None:
    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})))
    outbox.write_manifest(manifest(0, stage(plan, folder, 0, "l1-0000", {"sink": [batch(2)]})))
    assert len(staged_names(tmp_path)) == 2
    outbox.publish(0)
    assert published(tmp_path) == [2]
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
    assert len(staged_names(tmp_path)) == 1
    outbox.publish(0)
    assert published(tmp_path) == [1]


def test_files_are_published_in_the_order_of_their_places(
    tmp_path: Path, plan: JobPlan, folder: Path, outbox: Outbox
) -> None:
    files = [
        f for place in ("l1-0001", "l1-0000") for f in stage(plan, folder, 0, place, {"sink": [batch(int(place[-1]))]})
    ]
    outbox.write_manifest(manifest(0, files))
    assert [f.name for f in outbox.publish(0).files] == [
        "sink-0000000000-l1-0000.jsonl",
        "sink-0000000000-l1-0001.jsonl",
    ]


def test_a_staged_file_removed_from_outside_is_told(plan: JobPlan, folder: Path, outbox: Outbox) -> None:
    files = stage(plan, folder, 0, "l1-0000", {"sink": [batch(1)]})
    outbox.write_manifest(manifest(0, files))
    Path(files[0].path).unlink()
    with pytest.raises(hw.PublishError, match="neither there nor published"):
        outbox.publish(0)
    assert outbox.pending() == [0]


def test_a_sink_that_fails_leaves_the_epoch_staged(folder: Path) -> None:
    class Failing(hw.connectors.Sink):
        def describe(self) -> str:
            return "failing"

        def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None: ...

        def publish(self, epoch: int, files: list[Staged]) -> None:
            raise ConnectionError("no route")

    outbox = Outbox(folder, {"sink": Failing()}, ignore_steps)
    outbox.write_manifest(manifest(3))
    with pytest.raises(hw.PublishError, match="'sink' could not publish epoch 3: ConnectionError: no route"):
        outbox.publish(3)
    assert outbox.pending() == [3]


def test_a_damaged_manifest_is_told(folder: Path, outbox: Outbox) -> None:
    outbox.write_manifest(manifest(0))
    (folder / "manifest-0000000000.json").write_text('{"epoch": 0, "fi')
    with pytest.raises(hw.JobError, match=r"manifest-0000000000\.json cannot be read"):
        outbox.publish(0)


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
