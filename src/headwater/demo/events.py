"""Clicks and orders for the demo, and the truth about them, computed here and not by the job."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import headwater as hw
from headwater.demo.job import CLICK, ORDER

USERS, PRODUCTS, PARTITIONS = 500, 40, 2
_PAGES = ["home", "search", "product", "basket", "help"]
_START_US = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC
_APPEND_ROWS = 1_000


@dataclass(frozen=True)
class Events:
    """Everything that happened, in memory."""

    clicks: pa.Table
    orders: pa.Table

    def __len__(self) -> int:
        return len(self.clicks) + len(self.orders)


@dataclass(frozen=True)
class KeyTruth:
    """What the job must come to for one key: which events it has, and their total."""

    ids: frozenset[int]
    total: int


@dataclass(frozen=True)
class Truth:
    """What the job must come to: per user the number of clicks, per product the cents of its orders."""

    clicks: dict[str, KeyTruth]
    sales: dict[str, KeyTruth]


def generate(count: int, seed: int = 1) -> Events:
    """`count` events, half of them clicks and half orders, of a few busy and many quiet users and products."""
    random = np.random.default_rng(seed)
    orders = count // 2
    clicks = count - orders
    click_columns = {
        "id": np.arange(clicks),
        "ts": _times(clicks, random),
        "user": _names("user", USERS, clicks, random),
        "page": pa.array(_PAGES).take(random.integers(0, len(_PAGES), clicks)),
    }
    order_columns = {
        "id": np.arange(orders),
        "ts": _times(orders, random),
        "product": _names("product", PRODUCTS, orders, random),
        "cents": random.integers(1_00, 20_00, orders),
    }
    return Events(
        clicks=pa.table(click_columns, schema=hw.Schema.of(CLICK).arrow),
        orders=pa.table(order_columns, schema=hw.Schema.of(ORDER).arrow),
    )


def write_log(events: Events, folder: Path) -> None:
    """Append the events to the topics `clicks` and `orders`, by turns to each of their partitions."""
    log = hw.EventLog(folder)
    for name, table in (("clicks", events.clicks), ("orders", events.orders)):
        topic = log.create_topic(name, table.schema, PARTITIONS)
        for number, start in enumerate(range(0, len(table), _APPEND_ROWS)):
            topic.append(table.slice(start, _APPEND_ROWS), partition=number % PARTITIONS)


def truth_of(events: Events) -> Truth:
    """The truth about all events, by Arrow's own aggregation."""
    clicks = events.clicks.group_by("user").aggregate([("id", "list"), ("id", "count")])
    sales = events.orders.group_by("product").aggregate([("id", "list"), ("cents", "sum")])
    return Truth(_by_key(clicks, "user", "id_count"), _by_key(sales, "product", "cents_sum"))


def _times(count: int, random: np.random.Generator) -> pa.Array:
    """An event every 10 ms, up to 2 s out of order."""
    micros = _START_US + np.arange(count) * 10_000 - random.integers(0, 2_000_000, count)
    return pa.array(micros, pa.timestamp("us", "UTC"))


def _names(what: str, names: int, count: int, random: np.random.Generator) -> pa.Array:
    """Names by a power law: number 1 is the most frequent."""
    numbers = pa.array((names + 1) ** random.random(count)).cast(pa.int64(), safe=False).cast(pa.string())
    return pc.binary_join_element_wise(what, pc.utf8_lpad(numbers, 3, "0"), "-")


def _by_key(table: pa.Table, key: str, total: str) -> dict[str, KeyTruth]:
    columns = (table[name].to_pylist() for name in (key, "id_list", total))
    return {name: KeyTruth(frozenset(ids), value) for name, ids, value in zip(*columns, strict=True)}
