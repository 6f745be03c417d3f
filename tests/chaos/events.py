"""Orders and payments without end, from a seed, made so that the truth about them does not depend on epochs.

All rows of a user are in one partition, so their order is known. Rows are out of order by less than the watermark allows,
but for two kinds: a straggler comes after the watermark may have passed it, while its window is still kept; an ancient
row comes when its window is gone for certain. Knows nothing of Headwater.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from typing import NamedTuple

BOUND_MS, LATENESS_MS, WINDOW_MS = 5_000, 5_000, 10_000
"""How far rows are out of order, how much later a window still takes them, and how long it is."""
DEADLINE_MS = 30_000
"""When the timer of an order fires, unless the order is cancelled before."""
JOIN_MS = (-2_000, 15_000)
"""When a payment counts, from its order's time."""
REVENUE_MS = 20_000
"""The windows over what the join gives."""

USERS, ORDER_PARTITIONS, PAYMENT_PARTITIONS = 30, 3, 2
START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
TICK_MS = 1_000
"""How far event time moves from one portion of rows to the next."""
_ORDERS_PER_TICK = 20
_CANCEL_WITHIN_TICKS = 8
"""Much less than the deadline: a timer that is to be deleted has not fired."""


class Order(NamedTuple):
    id: int
    ts_ms: int
    user: str
    kind: str
    """'order', 'cancel', 'straggler' or 'ancient'."""
    amount: int
    of: int | None
    """The order that is cancelled."""


class Payment(NamedTuple):
    id: int
    ts_ms: int
    of: int
    paid: int


class Events:
    """What happens, tick by tick, with all of it kept for the truth."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.orders: list[Order] = []
        self.payments: list[Payment] = []
        self._tick = 0
        self._next_id = 0
        self._due: list[tuple[int, Payment]] = []
        """Payments still to come, by their tick."""
        self._recent: deque[tuple[int, Order]] = deque()
        """Orders that may still be cancelled, with their tick."""
        self._highest_ms: dict[tuple[str, int], int] = {}
        """Per topic and partition: the largest time so far."""

    def tick(self, watermark_ms: int | None) -> tuple[list[Order], list[Payment]]:
        """The next portion. `watermark_ms` is one that the job has certainly reached: rows behind it may be ancient."""
        chance, first_order, first_payment = self._chance, len(self.orders), len(self.payments)
        for _ in range(chance.randrange(_ORDERS_PER_TICK * 2)):
            self._order(watermark_ms)
        while self._due and self._due[0][0] <= self._tick:
            self._pay(heapq.heappop(self._due)[1])
        while self._recent and self._recent[0][0] < self._tick - _CANCEL_WITHIN_TICKS:
            self._recent.popleft()
        self._tick += 1
        return self.orders[first_order:], self.payments[first_payment:]

    def _order(self, watermark_ms: int | None) -> None:
        chance, number = self._chance, self._id()
        user = chance.randrange(USERS)
        highest_ms = self._highest_ms.get(("orders", user % ORDER_PARTITIONS), START_MS)
        kind, of, ts_ms = "order", None, self._time("orders", user % ORDER_PARTITIONS)
        roll = chance.random()
        if roll < 0.05 and self._recent:
            tick, order = chance.choice(self._recent)
            self._recent.remove((tick, order))
            user, kind, of = int(order.user[1:]), "cancel", order.id
            ts_ms = self._time("orders", user % ORDER_PARTITIONS)
        elif roll < 0.10:
            kind, ts_ms = "straggler", highest_ms - BOUND_MS - chance.randrange(LATENESS_MS)
        elif roll < 0.11 and watermark_ms is not None:
            kind, ts_ms = "ancient", watermark_ms - WINDOW_MS - LATENESS_MS - chance.randrange(60_000)
        order = Order(number, ts_ms, f"u{user:02d}", kind, chance.randrange(1, 1_000), of)
        self.orders.append(order)
        self._note("orders", partition_of(order), ts_ms)
        if kind == "order":
            self._recent.append((self._tick, order))
            for _ in range(chance.choice((0, 1, 1, 1, 2))):
                self._owe(order)

    def _owe(self, order: Order) -> None:
        """A payment some time from now; one in ten or so comes when it does not count."""
        ts_ms = order.ts_ms + self._chance.randrange(JOIN_MS[0], JOIN_MS[1] + 2_000)
        tick = max(self._tick, (ts_ms - START_MS) // TICK_MS)
        heapq.heappush(self._due, (tick, Payment(self._id(), ts_ms, order.id, order.amount)))

    def _pay(self, payment: Payment) -> None:
        partition = partition_of(payment)
        earliest_ms = self._highest_ms.get(("payments", partition), START_MS) - BOUND_MS
        payment = payment._replace(ts_ms=max(payment.ts_ms, earliest_ms))
        self.payments.append(payment)
        self._note("payments", partition, payment.ts_ms)

    def _time(self, topic: str, partition: int) -> int:
        """A time in this tick or a little before, not later than the watermark bears."""
        now_ms = START_MS + self._tick * TICK_MS + self._chance.randrange(TICK_MS)
        earliest_ms = self._highest_ms.get((topic, partition), START_MS) - BOUND_MS
        return max(now_ms - self._chance.randrange(BOUND_MS), earliest_ms)

    def _note(self, topic: str, partition: int, ts_ms: int) -> None:
        self._highest_ms[topic, partition] = max(self._highest_ms.get((topic, partition), START_MS), ts_ms)

    def _id(self) -> int:
        self._next_id += 1
        return self._next_id


def partition_of(event: Order | Payment) -> int:
    """Where a row goes: all of a user's, and all payments of an order, to one partition."""
    if isinstance(event, Order):
        return int(event.user[1:]) % ORDER_PARTITIONS
    return event.of % PAYMENT_PARTITIONS
