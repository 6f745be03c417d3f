"""Mistakes in putting a job together; each is told before anything runs."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.mistakes.mistake import ORDER, orders, says

import headwater as hw


@says("usr", "user, ts, amount")
def key_column_mistyped(folder: Path) -> None:
    orders().key_by("usr")


@says("amout", "amount")
def column_mistyped_in_select(folder: Path) -> None:
    orders().select("user", "amout * 2 as twice")


@says("amout", "amount")
def column_mistyped_in_where(folder: Path) -> None:
    orders().where("amout > 3")


@says("amout", "amount")
def column_mistyped_in_aggregate(folder: Path) -> None:
    orders().key_by("user").window(hw.tumbling("1 min")).agg(total=hw.sum("amout"))


@says("time", "ts")
def timestamp_column_mistyped(folder: Path) -> None:
    hw.Environment("shop").from_rows([], ORDER, hw.Watermarks.bounded("time", "1 s"))


@says("user", "timestamp")
def event_time_from_text(folder: Path) -> None:
    hw.Environment("shop").from_rows([], ORDER, hw.Watermarks.bounded("user", "1 s"))


@says("strng", "string")
def type_mistyped_in_schema(folder: Path) -> None:
    hw.Environment("shop").from_rows([], "user strng")


@says("parsecs", "10 s")
def duration_of_no_unit(folder: Path) -> None:
    hw.Watermarks.bounded("ts", "10 parsecs")


@says("'0 s'", "tumbling('10 s')")
def window_of_no_size(folder: Path) -> None:
    hw.tumbling("0 s")


@says("session", "0")
def session_without_gap(folder: Path) -> None:
    hw.session("0 s")


@says("flink", "spark or local")
def engine_unknown(folder: Path) -> None:
    hw.Environment("shop", engine="flink")  # type: ignore[arg-type]


@says("parallelism", "0")
def no_parallelism(folder: Path) -> None:
    hw.Environment("shop", parallelism=0)


@says("parallelism", "200", "128")
def more_subtasks_than_key_groups(folder: Path) -> None:
    hw.Environment("shop", parallelism=200)


@says("twice", "exactly_once")
def checkpointing_unknown(folder: Path) -> None:
    hw.Environment("shop", checkpointing="twice")  # type: ignore[arg-type]


@says("ram", "memory", "disk")
def state_backend_unknown(folder: Path) -> None:
    hw.Environment("shop", state_backend="ram")  # type: ignore[arg-type]


@says("always", "hw.restart")
def restart_strategy_as_text(folder: Path) -> None:
    hw.Environment("shop", restart="always")  # type: ignore[arg-type]


@says("my shop", "letters")
def name_with_a_space(folder: Path) -> None:
    hw.Environment("my shop")


@says("sink")
def job_without_sink(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    orders(env).where("amount > 3")
    env.run()


class _Count(hw.KeyedProcessFunction):
    n = hw.ValueState("long", default=0)

    def process(self, event: Any, ctx: hw.Context) -> Any:
        self.n.set(self.n.get() + 1)
        yield {"user": event.user, "n": self.n.get()}


@says("_Count", "instance")
def class_instead_of_function(folder: Path) -> None:
    orders().key_by("user").process(_Count, "user string, n long")  # type: ignore[arg-type]


@says("key_by")
def keyed_function_without_key(folder: Path) -> None:
    orders().process(_Count(), "user string, n long")  # type: ignore[arg-type]


@says("key_by", "window_all")
def window_without_key(folder: Path) -> None:
    orders().window(hw.tumbling("1 min"))  # type: ignore[attr-defined]


@says("lnog", "long")
def state_of_unknown_type(folder: Path) -> None:
    hw.ValueState("lnog")


@says("user", "string", "sum")
def sum_of_text(folder: Path) -> None:
    orders().key_by("user").window(hw.tumbling("1 min")).agg(total=hw.sum("user"))


@says("schema")
def union_of_other_columns(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    orders(env).union(env.from_rows([("x",)], "word string"))


@says("string", "double")
def join_of_other_key_types(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    left, right = orders(env), orders(env)
    left.key_by("user").interval_join(right.key_by("amount"), ("0 s", "1 s"))


@says("lower", "upper")
def join_bounds_the_wrong_way_round(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    left, right = orders(env).key_by("user"), orders(env).key_by("user")
    left.interval_join(right, ("10 s", "5 s"))


@says("rand()", "replay", "ctx.now")
def expression_that_differs_on_replay(folder: Path) -> None:
    orders().select("user", "rand() as luck")


@says("aggregates")
def aggregate_in_select(folder: Path) -> None:
    orders().select("sum(amount) as total")


@says("amount + 1", "as name")
def expression_without_a_name(folder: Path) -> None:
    orders().select("amount + 1")


@says("orders", "with_uid")
def uid_given_twice(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    orders(env).with_uid("orders").where("amount > 1").with_uid("orders").print()
    env.run()


@says("lateness", "negative")
def negative_lateness(folder: Path) -> None:
    orders().key_by("user").window(hw.tumbling("1 min")).allow_lateness(timedelta(seconds=-5))


@says("row_kind", "with_row_kind()")
def changelog_into_a_function(folder: Path) -> None:
    env = hw.Environment("shop", engine="local")
    left, right = orders(env).key_by("user"), orders(env).key_by("user")

    class Look(hw.KeyedProcessFunction):
        def process(self, row: Any, ctx: hw.Context) -> Any:
            yield {"user": row.user}

    left.join_regular(right, how="left").key_by("user").process(Look(), "user string")


@says("agg", "hw.sum")
def aggregate_given_as_text(folder: Path) -> None:
    orders().key_by("user").agg(total="sum(amount)")
