"""Mistakes with folders: outputs, job folders, savepoints. Nothing ever advises to remove a folder that holds a job."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.mistakes.mistake import ORDER, ROWS, orders, says

import headwater as hw


def _job(folder: Path, **settings: Any) -> hw.Environment:
    env = hw.Environment("shop", engine="local", **settings)
    orders(env).key_by("user").agg(n=hw.count()).with_uid("counts").sink(hw.connectors.files(folder / "out"))
    return env


@says("out", "file", "folder")
def sink_path_is_a_file(folder: Path) -> None:
    (folder / "out").write_text("mine")
    _job(folder).run()


@says("out", "'sink' and 'sink-2'", "each its own")
def two_sinks_in_one_folder(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    rows = orders(env)
    rows.sink(hw.connectors.files(folder / "out"))
    rows.where("amount > 3").sink(hw.connectors.files(folder / "out"))
    env.run()


@says("out", "report.parquet")
def sink_folder_with_foreign_files(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "report.parquet").write_bytes(b"PAR1")
    _job(folder).run()


@says("nowhere", "savepoint")
def savepoint_that_is_not_there(folder: Path) -> None:
    _job(folder).run(from_=folder / "nowhere")


@says("out", "savepoint", "output")
def output_folder_as_savepoint(folder: Path) -> None:
    _job(folder).run()
    _job(folder).run(from_=folder / "out")


@says("savepoint", "job")
def job_folder_as_savepoint(folder: Path) -> None:
    (folder / "job" / "outbox").mkdir(parents=True)
    (folder / "job" / "job.json").write_text("{}")
    _job(folder).run(from_=folder / "job")


@says("saved", "not empty", "another path")
def savepoint_over_another(folder: Path) -> None:
    (folder / "saved").mkdir()
    (folder / "saved" / "notes.txt").write_text("mine")
    _job(folder).start().stop(savepoint=folder / "saved")


@says("nowhere", "orders")
def topic_that_is_not_there(folder: Path) -> None:
    hw.EventLog(folder / "log").create_topic("orders", ORDER).append(ROWS)
    env = hw.Environment("shop", engine="local")
    env.source(hw.connectors.log(folder / "log", "nowhere"), ORDER).print()
    env.run(bounded=True)


@says("orders", "amount")
def schema_that_the_topic_does_not_have(folder: Path) -> None:
    hw.EventLog(folder / "log").create_topic("orders", ORDER).append(ROWS)
    env = hw.Environment("shop", engine="local")
    env.source(hw.connectors.log(folder / "log", "orders"), "user string, amount string").print()
    env.run(bounded=True)


@says("nowhere")
def files_that_are_not_there(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    env.source(hw.connectors.read_files(folder / "nowhere", format="json"), ORDER).print()
    env.run(bounded=True)


@says("orders.json", "amount")
def record_that_cannot_be_read(folder: Path) -> None:
    (folder / "in").mkdir()
    (folder / "in" / "orders.json").write_text('{"user": "ann", "amount": "three"}\n')
    env = hw.Environment("shop", engine="local")
    env.source(hw.connectors.read_files(folder / "in", format="json"), "user string, amount double").print()
    env.run(bounded=True)


@says("xml", "json")
def format_unknown(folder: Path) -> None:
    hw.connectors.read_files(folder, format="xml")  # type: ignore[arg-type]


@says("nowhere")
def control_of_a_folder_without_job(folder: Path) -> None:
    hw.control.job(folder / "nowhere")


@says("nowhere")
def checkpoints_of_a_folder_without_job(folder: Path) -> None:
    list(hw.checkpoints(folder / "nowhere"))
