"""Taking savepoints: what can go wrong, and what is there then."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.job.engine import Settings
from headwater.local.engine import LocalEngine
from headwater.local.job import LocalJob
from headwater.savepoints.files import Savepoint
from headwater.savepoints.steps import SavepointStep


class Totals(hw.KeyedProcessFunction):
    total = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.n)
        yield {"k": event.k, "total": self.total.get()}


class Shop:
    """A job on a log that does not end, and the folders around it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._topic = hw.EventLog(folder / "log").create_topic("orders", hw.Schema.of("k string, n long").arrow)

    def order(self, *orders: tuple[str, int]) -> None:
        self._topic.append(pa.table({"k": [k for k, _ in orders], "n": [n for _, n in orders]}))

    def env(self, out: str = "out", **settings: Any) -> hw.Environment:
        env = hw.Environment("shop", engine="local", checkpoint_interval="1 ms", **settings)
        orders = env.source(hw.connectors.log(self.folder / "log", "orders"), "k string, n long")
        counted = orders.key_by("k").process(Totals(), "k string, total long", name="totals")
        counted.sink(hw.connectors.files(self.folder / out, format="json")).with_uid("out")
        return env

    def rows(self, out: str = "out") -> list[tuple[str, int]]:
        lines = [line for path in (self.folder / out).glob("*.jsonl") for line in path.read_text().splitlines()]
        return sorted((row["k"], row["total"]) for row in map(json.loads, lines))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def until(job: hw.Job, rows: int) -> hw.Job:
    """The job when the rows that it has read are published."""
    while True:
        status = job.status()
        if status.published >= status.epoch >= 0 and sum(status.positions["source"].values()) == rows:
            return job
        assert not job.wait(0.002)


def test_savepoint_needs_a_folder_of_its_own(shop: Shop, tmp_path: Path) -> None:
    shop.order(("a", 1))
    job = until(shop.env().start(), 1)
    first = job.savepoint(tmp_path / "first")
    (tmp_path / "file").touch()
    for path in (first, tmp_path / "file", tmp_path):
        with pytest.raises(hw.SavepointError, match=r"is there already and not empty; .* choose another path"):
            job.savepoint(path)
        with pytest.raises(hw.SavepointError, match="is there already and not empty"):
            job.stop(savepoint=path)
    assert job.status().state == "running"
    (tmp_path / "empty").mkdir()
    assert job.stop(savepoint=tmp_path / "empty") == tmp_path / "empty"
    assert Savepoint.open(tmp_path / "empty").description.job == Savepoint.open(first).description.job == "shop"


@pytest.mark.parametrize("step", [SavepointStep.BEGUN, SavepointStep.WRITING, SavepointStep.WRITTEN])
def test_savepoint_that_fails_leaves_nothing_and_the_job_goes_on(
    step: SavepointStep, shop: Shop, tmp_path: Path
) -> None:
    trouble: list[Exception] = [OSError(28, "No space left on device"), RuntimeError("trouble")]

    def on_step(at: SavepointStep, epoch: int) -> None:
        if at is not SavepointStep.COMPLETE:
            with pytest.raises(hw.SavepointError, match=r"is incomplete: it has no savepoint.json"):
                Savepoint.open(tmp_path / "saved")
        if at is step and trouble:
            raise trouble.pop(0)

    shop.order(("a", 1), ("b", 2))
    job = until(start(shop.env(), on_step), 2)
    with pytest.raises(
        hw.SavepointError, match=r"could not be taken: \[Errno 28\] No space left on device; .* take it again"
    ):
        job.savepoint(tmp_path / "saved")
    with pytest.raises(RuntimeError, match="trouble"):
        job.savepoint(tmp_path / "saved")
    with pytest.raises(hw.SavepointError, match="there is no savepoint at"):
        Savepoint.open(tmp_path / "saved")
    shop.order(("a", 3))
    saved = until(job, 3).savepoint(tmp_path / "saved")
    job.stop()
    assert shop.rows() == [("a", 1), ("a", 4), ("b", 2)]
    assert sorted(path.name for path in saved.iterdir()) == ["savepoint.json", "state"]


def test_two_savepoints_do_not_share_a_folder(shop: Shop, tmp_path: Path) -> None:
    """The second comes when the first has begun; the first goes on to its end."""
    refused: list[str] = []

    def on_step(step: SavepointStep, epoch: int) -> None:
        if step is SavepointStep.BEGUN:
            with pytest.raises(hw.SavepointError) as error:
                job.savepoint(tmp_path / "saved")
            refused.append(str(error.value))

    shop.order(("a", 1))
    job = until(start(shop.env(), on_step), 1)
    saved = job.savepoint(tmp_path / "saved")
    job.stop()
    assert len(refused) == 1
    assert hw.savepoint.read(saved)["totals", "total"].rows == 1


def test_old_job_that_goes_on_keeps_its_output(shop: Shop, tmp_path: Path) -> None:
    shop.order(("a", 1))
    old = until(shop.env().start(), 1)
    saved = old.savepoint(tmp_path / "saved")
    shop.order(("a", 2))
    until(old, 2)
    with pytest.raises(hw.PublishError, match="has output from after the savepoint"):
        shop.env().start(from_=saved)
    elsewhere = until(shop.env("elsewhere").start(from_=saved), 2)
    shop.order(("a", 4))
    for job in (old, elsewhere):
        until(job, 3).stop()
    assert (shop.rows(), shop.rows("elsewhere")) == ([("a", 1), ("a", 3), ("a", 7)], [("a", 3), ("a", 7)])


def test_old_job_that_was_handed_over_fails_at_its_next_rows(shop: Shop, tmp_path: Path) -> None:
    shop.order(("a", 1))
    old = until(shop.env().start(), 1)
    new = shop.env().start(from_=old.savepoint(tmp_path / "saved"))
    shop.order(("a", 2))
    until(new, 2)
    with pytest.raises(hw.PublishError, match=r"was handed over to job .* start that job with its job_dir"):
        old.wait()
    shop.order(("a", 4))
    until(new, 3).stop()
    assert shop.rows() == [("a", 1), ("a", 3), ("a", 7)]


def test_start_that_is_refused_by_one_output_can_be_made_again(shop: Shop, tmp_path: Path) -> None:
    def two() -> hw.Environment:
        env = shop.env()
        rows = env.from_rows([(1,)], "n long", name="more")
        rows.sink(hw.connectors.files(tmp_path / "more", format="json")).with_uid("more-out")
        return env

    shop.order(("a", 1))
    saved = until(two().start(), 1).stop(savepoint=tmp_path / "saved")
    later = tmp_path / "more" / "more-out-0000009999-s0000.jsonl"
    later.touch()
    with pytest.raises(hw.PublishError, match=r"sink 'more-out': .* output from after the savepoint"):
        two().start(from_=saved)
    later.unlink()
    shop.order(("a", 2))
    until(two().start(from_=saved), 2).stop()
    assert shop.rows() == [("a", 1), ("a", 3)]


def start(env: hw.Environment, on_savepoint_step: Any) -> LocalJob:
    settings = Settings(
        job_dir=None,
        checkpoint_interval_ms=1,
        checkpoints_retained=1,
        max_rows_per_epoch=1000,
        bounded=False,
        on_savepoint_step=on_savepoint_step,
    )
    return LocalEngine().start(env.plan(), settings)
