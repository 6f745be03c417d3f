"""Appends events to the job's log, in a thread of its own, until it is told to end."""

from __future__ import annotations

import bisect
import json
import threading
from pathlib import Path

import pyarrow as pa
from tests.chaos.events import BOUND_MS, ORDER_PARTITIONS, PAYMENT_PARTITIONS, Events, Order, Payment, partition_of
from tests.chaos.job import ORDER, PAYMENT

import headwater as hw

_TICK_S = 0.25
"""From one portion to the next; with what is in one, far less than the job can do."""


class Feed:
    """The producer of both topics."""

    def __init__(self, folder: Path, disk: Path, events: Events) -> None:
        log = hw.EventLog(folder / "log")
        self._orders = log.create_topic("orders", hw.Schema.of(ORDER).arrow, ORDER_PARTITIONS)
        self._payments = log.create_topic("payments", hw.Schema.of(PAYMENT).arrow, PAYMENT_PARTITIONS)
        self._published = disk / "job" / "outbox" / "published.json"
        self._events = events
        self._marks: list[tuple[list[int], list[int]]] = [([], []) for _ in range(ORDER_PARTITIONS)]
        """Per partition of the orders: offsets after an append, and the largest time up to there."""
        self._ending = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Append no more; raises what went wrong."""
        self._ending.set()
        self._thread.join(60)
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._ending.wait(_TICK_S):
                self.append()
        except Exception as error:  # handed to whoever ends the feed
            self._error = error

    def append(self) -> None:
        """Append the next portion."""
        orders, payments = self._events.tick(self._certain_watermark())
        for partition in range(ORDER_PARTITIONS):
            part = [order for order in orders if partition_of(order) == partition]
            if part:
                _, end = self._orders.append(_order_table(part), partition)
                ends, highest = self._marks[partition]
                ends.append(end)
                highest.append(max([*highest[-1:], *(order.ts_ms for order in part)]))
        for partition in range(PAYMENT_PARTITIONS):
            part_paid = [payment for payment in payments if partition_of(payment) == partition]
            if part_paid:
                self._payments.append(_payment_table(part_paid), partition)

    def _certain_watermark(self) -> int | None:
        """The watermark of the orders in the newest epoch that is published: every later epoch begins with it or more."""
        try:
            positions = json.loads(self._published.read_text())["positions"]["orders"]
        except (OSError, ValueError):  # not there yet, or just then damaged on purpose
            return None
        reached = []
        for partition, (ends, highest) in enumerate(self._marks):
            appends = bisect.bisect_right(ends, positions[str(partition)])
            if not appends:
                return None
            reached.append(highest[appends - 1])
        return min(reached) - BOUND_MS - 1


def _order_table(orders: list[Order]) -> pa.Table:
    ids, times, users, kinds, amounts, of = zip(*orders, strict=True)
    columns = {"id": ids, "ts": _times(times), "user": users, "kind": kinds, "amount": amounts, "of": of}
    return pa.table(columns, schema=hw.Schema.of(ORDER).arrow)


def _payment_table(payments: list[Payment]) -> pa.Table:
    ids, times, of, paid = zip(*payments, strict=True)
    return pa.table({"id": ids, "ts": _times(times), "of": of, "paid": paid}, schema=hw.Schema.of(PAYMENT).arrow)


def _times(times_ms: tuple[int, ...]) -> pa.Array:
    return pa.array([ts_ms * 1000 for ts_ms in times_ms], pa.timestamp("us", "UTC"))
