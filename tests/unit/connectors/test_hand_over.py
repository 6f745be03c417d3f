"""Whose an output folder is: jobs that go on from a savepoint get it, and the one before loses it."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.connectors.files.sink import FilesSink
from headwater.durable import one_at_a_time

N = hw.Schema.of("n long")


def opened(folder: Path, job: str, *, after: tuple[str, int] | None = None) -> FilesSink:
    """The sink of a job that starts, perhaps from the savepoint of an epoch of another job."""
    sink = hw.connectors.files(folder, format="json")
    if after is not None:
        sink.take_over("out", job, *after)
    sink.open("out", job, N, resumed=True)
    return sink


def publish(sink: FilesSink, epoch: int, *rows: int) -> None:
    """An epoch of a job on one subtask; one without rows has no files."""
    staged = []
    if rows:
        folder = sink.staging_folder(sink.folder)
        folder.mkdir(exist_ok=True)
        path = folder / f"{epoch:010d}-out-{'-'.join(map(str, rows))}.jsonl"
        sink.stage(pa.table({"n": rows}), path)
        staged.append(Staged("out", str(path), f"out-{epoch:010d}-l1-0000.jsonl", len(rows), path.stat().st_size))
    sink.publish(epoch, staged)


def rows_of(folder: Path) -> list[int]:
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [json.loads(line)["n"] for line in lines]


def test_output_goes_on_under_a_job_that_goes_on_from_the_savepoint(tmp_path: Path) -> None:
    publish(opened(tmp_path, "a"), 0, 1, 2)
    publish(opened(tmp_path, "b", after=("a", 0)), 1, 3)
    publish(opened(tmp_path, "b", after=("a", 0)), 2, 4)
    publish(opened(tmp_path, "c", after=("b", 2)), 3, 5)
    assert rows_of(tmp_path) == [1, 2, 3, 4, 5]


def test_output_that_has_rows_from_after_the_savepoint_is_refused(tmp_path: Path) -> None:
    sink = opened(tmp_path, "a")
    publish(sink, 0, 1)
    publish(sink, 1, 2)
    with pytest.raises(
        hw.PublishError, match=r"after the savepoint, which is of epoch 0 \(out-0000000001-l1-0000.jsonl"
    ):
        opened(tmp_path, "b", after=("a", 0))
    publish(sink, 2, 3)
    assert rows_of(tmp_path) == [1, 2, 3], "the job that has the output goes on"


def test_job_that_was_handed_over_can_neither_publish_nor_start_again(tmp_path: Path) -> None:
    old = opened(tmp_path, "a")
    publish(old, 0, 1)
    new = opened(tmp_path, "b", after=("a", 0))
    for go_on in (lambda: publish(old, 1, 2), lambda: opened(tmp_path, "a")):
        with pytest.raises(hw.PublishError) as refused:
            go_on()
        assert str(refused.value) == (
            f"sink 'out': folder {tmp_path} was handed over to job b, which goes on from the savepoint of epoch 0 of this job; "
            f"start that job with its job_dir; or to go back, start this program from the savepoint in a new job_dir; "
            f"or let this job write elsewhere"
        )
    publish(new, 1, 20)
    assert rows_of(tmp_path) == [1, 20]


def test_savepoint_can_be_started_from_again_until_a_job_has_published(tmp_path: Path) -> None:
    publish(opened(tmp_path, "a"), 0, 1)
    failed = opened(tmp_path, "b", after=("a", 0))
    publish(failed, 1)
    second = opened(tmp_path, "c", after=("a", 0))
    with pytest.raises(hw.PublishError, match="holds the output of another run"):
        publish(failed, 2, 2)
    publish(second, 1, 3)
    with pytest.raises(hw.PublishError, match="output from after the savepoint"):
        opened(tmp_path, "d", after=("a", 0))
    assert rows_of(tmp_path) == [1, 3]


def test_new_output_of_a_start_that_failed_can_be_had_again(tmp_path: Path) -> None:
    opened(tmp_path, "b", after=("a", 0))
    publish(opened(tmp_path, "c", after=("a", 0)), 1, 3)
    assert rows_of(tmp_path) == [3]


def test_output_of_others_is_not_handed_over(tmp_path: Path) -> None:
    publish(opened(tmp_path, "a"), 0, 1)
    for before in (("z", 0), ("z", 7)):
        with pytest.raises(hw.PublishError, match="holds the output of another run"):
            opened(tmp_path, "b", after=before)
    publish(opened(tmp_path, "a"), 1, 2)
    assert rows_of(tmp_path) == [1, 2]


def test_one_at_a_time_waits_for_who_is_inside(tmp_path: Path) -> None:
    order: list[str] = []
    entering = threading.Event()

    def second() -> None:
        entering.set()
        with one_at_a_time(tmp_path / "lock"):
            order.append("second")

    thread = threading.Thread(target=second)
    with one_at_a_time(tmp_path / "lock"):
        thread.start()
        entering.wait()
        thread.join(0.05)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
