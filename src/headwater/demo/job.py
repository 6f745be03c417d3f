"""The demo's job: three topics in; running totals, windows with late rows and a rule that changes; four folders out.

`python -m headwater.demo.job FOLDER` runs it until it is stopped, going on from where it stood if it was stopped or
killed before. Nothing in here is about recovery: exactly-once is the engine's business.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import headwater as hw

CLICK = "id long, ts timestamp, user string, page string"
ORDER = "id long, ts timestamp, product string, cents long"
LIMIT = "cents long"
LIMITS = hw.MapState("limits", "string", "long")
"""The rule: an order of more cents than this is a large one."""
LATENESS = "10 min"
"""How long a minute can be corrected; longer than any order is late."""


class ClickCount(hw.KeyedProcessFunction):
    """Numbers the clicks of each user 1, 2, 3 and so on."""

    clicks = hw.ValueState("long", default=0)

    def process(self, click: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        clicks = self.clicks.get() + 1
        self.clicks.set(clicks)
        yield {"id": click.id, "user": click.user, "clicks": clicks}


class ProductSales(hw.KeyedProcessFunction):
    """Adds up the orders of each product."""

    orders = hw.ValueState("long", default=0)
    cents = hw.ValueState("long", default=0)

    def process(self, order: Any, ctx: hw.Context) -> Iterator[dict[str, Any]]:
        orders, cents = self.orders.get() + 1, self.cents.get() + order.cents
        self.orders.set(orders)
        self.cents.set(cents)
        yield {"id": order.id, "product": order.product, "orders": orders, "cents": cents}


class LargeOrders(hw.KeyedBroadcastFunction):
    """Tells of orders above the limit, as it is when they come."""

    def process(self, order: Any, ctx: hw.BroadcastContext) -> Iterator[dict[str, Any]]:
        limit = ctx.broadcast_state(LIMITS).get("large")
        if order.cents > limit:
            yield {"id": order.id, "product": order.product, "cents": order.cents, "above": limit}

    def process_broadcast(self, limit: Any, ctx: hw.BroadcastContext) -> None:
        ctx.broadcast_state(LIMITS).put("large", limit.cents)


def build(folder: Path, rows_per_epoch: int, engine: Literal["spark", "local"] = "spark") -> hw.Environment:
    """The job: reads FOLDER/log, keeps its progress in FOLDER/job, writes FOLDER/clicks, sales, minutes and large."""
    env = hw.Environment(
        "demo",
        job_dir=folder / "job",
        max_rows_per_epoch=rows_per_epoch,
        checkpoint_interval="100 ms",
        engine=engine,
    )
    watermarks = hw.Watermarks.bounded("ts", "5 s")

    clicks = env.source(hw.connectors.log(folder / "log", "clicks"), CLICK, watermarks, name="clicks")
    counts = clicks.key_by("user").process(ClickCount(), "id long, user string, clicks long")
    counts.sink(hw.connectors.files(folder / "clicks"), name="click-counts")

    orders = env.source(hw.connectors.log(folder / "log", "orders"), ORDER, watermarks, name="orders")
    sales = orders.key_by("product").process(ProductSales(), "id long, product string, orders long, cents long")
    sales.sink(hw.connectors.files(folder / "sales"), name="sales")

    windows = orders.key_by("product").window(hw.tumbling("1 min")).allow_lateness(LATENESS)
    minutes = windows.panes("accumulating", info=True).agg(orders=hw.count(), cents=hw.sum("cents"))
    minutes.with_uid("minutes").sink(hw.connectors.files(folder / "minutes"), name="sales-by-minute")

    limits = env.source(hw.connectors.log(folder / "log", "limits"), LIMIT, name="limits")
    large = orders.key_by("product").connect(limits.broadcast(LIMITS))
    alerts = large.process(LargeOrders(), "id long, product string, cents long, above long")
    alerts.with_uid("large").sink(hw.connectors.files(folder / "large"), name="large-orders")
    return env


def main() -> None:
    """Run the job until it is stopped."""
    options = argparse.ArgumentParser(prog="python -m headwater.demo.job", description="run the demo's job")
    options.add_argument("folder", type=Path)
    options.add_argument("--rows-per-epoch", type=int, default=10_000, help="rows of each topic in one epoch")
    args = options.parse_args()
    build(args.folder, args.rows_per_epoch).run()


if __name__ == "__main__":
    main()
