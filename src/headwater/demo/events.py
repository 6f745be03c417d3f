"""Clicks, orders and limits for the demo, and the truth about them, computed here and not by the job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import headwater as hw
from headwater.demo.job import CLICK, LIMIT, ORDER

USERS, PRODUCTS, PARTITIONS = 500, 40, 2
_PAGES = ["home", "search", "product", "basket", "help"]
_START_US = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC
_APPEND_ROWS = 1_000
_LATE_SHARE, _LATE_US = 0.02, (60_000_000, 180_000_000)
"""So many orders come so much later than they happened: their minute is over by then."""
_CLOSING_US = 2 * 3_600_000_000
"""The time after the first order of the last ones, behind which every minute is over."""
FIRST_LIMIT_CENTS, LATER_LIMIT_CENTS = 15_00, 10_00


@dataclass(frozen=True)
class Events:
    """Everything that happened, in memory."""

    clicks: pa.Table
    orders: pa.Table
    closing: pa.Table
    """An order for each partition, much later than all others."""
    late: int
    """How many of the orders are late."""

    def __len__(self) -> int:
        return len(self.clicks) + len(self.orders) + len(self.closing)


@dataclass(frozen=True)
class KeyTruth:
    """What the job must come to for one key: which events it has, and their total."""

    ids: frozenset[int]
    total: int


@dataclass(frozen=True)
class Truth:
    """What the job must come to.

    Per user the number of clicks; per product the cents of its orders; per product and minute its orders and cents; and of
    each partition the cents of its orders, by id, from which follows which ones are large.
    """

    clicks: dict[str, KeyTruth]
    sales: dict[str, KeyTruth]
    minutes: dict[tuple[str, datetime], tuple[int, int]]
    orders: list[dict[int, int]]


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
        "ts": _times(orders, random, is_late := random.random(orders) < _LATE_SHARE),
        "product": _names("product", PRODUCTS, orders, random),
        "cents": random.integers(1_00, 20_00, orders),
    }
    closing_columns = {
        "id": orders + np.arange(PARTITIONS),
        "ts": pa.array([_START_US + _CLOSING_US] * PARTITIONS, pa.timestamp("us", "UTC")),
        "product": ["product-001"] * PARTITIONS,
        "cents": [1_00] * PARTITIONS,
    }
    order = hw.Schema.of(ORDER).arrow
    return Events(
        clicks=pa.table(click_columns, schema=hw.Schema.of(CLICK).arrow),
        orders=pa.table(order_columns, schema=order),
        closing=pa.table(closing_columns, schema=order),
        late=int(is_late.sum()),
    )


def write_log(events: Events, folder: Path) -> None:
    """Append the events to the topics `clicks` and `orders`, by turns to each of their partitions, and the first limit."""
    log = hw.EventLog(folder)
    for name, table in (("clicks", events.clicks), ("orders", events.orders)):
        topic = log.create_topic(name, table.schema, PARTITIONS)
        for start in range(0, len(table), _APPEND_ROWS):
            topic.append(table.slice(start, _APPEND_ROWS), partition=_partition(start))
    for partition in range(PARTITIONS):
        log.topic("orders").append(events.closing.slice(partition, 1), partition=partition)
    log.create_topic("limits", LIMIT)
    change_limit(folder, FIRST_LIMIT_CENTS)


def change_limit(folder: Path, cents: int) -> None:
    """Append a limit, which holds from the epoch on that reads it."""
    hw.EventLog(folder).topic("limits").append([(cents,)])


def append_order(folder: Path, number: int) -> None:
    """Append one more order, a second after the one before."""
    at = datetime.fromtimestamp((_START_US + _CLOSING_US) / 1e6 + number, UTC)
    product = f"product-{number % PRODUCTS + 1:03}"
    hw.EventLog(folder).topic("orders").append([(number, at, product, 5_00)], partition=number % PARTITIONS)


def _partition(number: int) -> int:
    """The partition of the event of this number."""
    return number // _APPEND_ROWS % PARTITIONS


def truth_of(events: Events) -> Truth:
    """The truth about all events, by Arrow's own aggregation."""
    clicks = events.clicks.group_by("user").aggregate([("id", "list"), ("id", "count")])
    orders = pa.concat_tables([events.orders, events.closing])
    sales = orders.group_by("product").aggregate([("id", "list"), ("cents", "sum")])
    return Truth(
        _by_key(clicks, "user", "id_count"),
        _by_key(sales, "product", "cents_sum"),
        _by_minute(events.orders),
        _by_partition(events.orders),
    )


def _times(count: int, random: np.random.Generator, is_late: Any = False) -> pa.Array:  # noqa: FBT002  an array of them
    """An event every 10 ms, up to 2 s out of order, and those that are late by much more."""
    micros = _START_US + np.arange(count) * 10_000 - random.integers(0, 2_000_000, count)
    micros = micros - np.where(is_late, random.integers(*_LATE_US, count), 0)
    return pa.array(micros, pa.timestamp("us", "UTC"))


def _names(what: str, names: int, count: int, random: np.random.Generator) -> pa.Array:
    """Names by a power law: number 1 is the most frequent."""
    numbers = pa.array((names + 1) ** random.random(count)).cast(pa.int64(), safe=False).cast(pa.string())
    return pc.binary_join_element_wise(what, pc.utf8_lpad(numbers, 3, "0"), "-")


def _by_minute(orders: pa.Table) -> dict[tuple[str, datetime], tuple[int, int]]:
    minutes = orders.append_column("minute", pc.floor_temporal(orders["ts"], unit="minute"))
    found = minutes.group_by(["product", "minute"]).aggregate([("cents", "count"), ("cents", "sum")]).to_pylist()
    return {(one["product"], one["minute"]): (one["cents_count"], one["cents_sum"]) for one in found}


def _by_partition(orders: pa.Table) -> list[dict[int, int]]:
    partitions: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
    for number, cents in zip(orders["id"].to_pylist(), orders["cents"].to_pylist(), strict=True):
        partitions[_partition(number)][number] = cents
    return partitions


def _by_key(table: pa.Table, key: str, total: str) -> dict[str, KeyTruth]:
    columns = (table[name].to_pylist() for name in (key, "id_list", total))
    return {name: KeyTruth(frozenset(ids), value) for name, ids, value in zip(*columns, strict=True)}
