"""Mistakes in running a job and asking it."""

from __future__ import annotations

from pathlib import Path

from tests.mistakes.mistake import ORDER, orders, says

import headwater as hw


def _counts(env: hw.Environment) -> hw.Step:
    return orders(env).key_by("user").agg(n=hw.count()).with_uid("counts")


@says("'orders'", "hw.Watermarks.bounded", "hw.processing_time")
def window_without_watermarks(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    orders(env, timed=False).key_by("user").window(hw.tumbling("1 min")).agg(n=hw.count()).print()
    env.run()


@says("count", "counts")
def state_of_an_unknown_step(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    _counts(env).print()
    env.run().state("count", "kept")


@says("number", "kept")
def state_of_an_unknown_name(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    _counts(env).print()
    env.run().state("counts", "number")


@says("bounded", "available_now")
def bounded_and_available_now(folder: Path) -> None:
    env = hw.Environment("shop", job_dir=folder / "job")
    _counts(env).print()
    env.run(bounded=True, available_now=True)


@says("available_now", "job_dir")
def available_now_without_a_job_dir(folder: Path) -> None:
    env = hw.Environment("shop")
    _counts(env).print()
    env.run(available_now=True)


@says("available_now", "local", "spark")
def available_now_on_the_local_engine(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    _counts(env).print()
    env.run(available_now=True)


@says("localhost:1")
def kafka_broker_that_is_not_there(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    env.source(hw.connectors.kafka("orders", "localhost:1", format="json", timeout="1 s"), ORDER).print()
    env.run(bounded=True)


@says("localhost:1")
def database_that_is_not_there(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    rows = orders(env).select("user", "amount")
    rows.sink(hw.connectors.postgres("postgresql://me:secret@localhost:1/shop", "orders"))
    env.run()


@says("checkpoints", "Spark", "job_dir")
def checkpoints_on_the_local_engine(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    _counts(env).print()
    env.run().checkpoints()


@says("DataFrame")
def something_else_as_dataframe(folder: Path) -> None:
    hw.Environment("shop").from_dataframe([1, 2, 3])
