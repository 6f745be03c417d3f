"""What the job must come to, computed from the events in plain Python, and how far its output is from that."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from tests.chaos.events import DEADLINE_MS, JOIN_MS, REVENUE_MS, WINDOW_MS, Events, Order

Rows = Counter[tuple[Any, ...]]


@dataclass
class Difference:
    """One output beside the truth."""

    rows: int
    lost: Rows = field(default_factory=Counter)
    """What should be there and is not."""
    doubled: Rows = field(default_factory=Counter)
    """What is there and should not be, or not so often."""

    @property
    def is_none(self) -> bool:
        """Whether the output is exact."""
        return not self.lost and not self.doubled


def differences(disk: Path, events: Events) -> dict[str, Difference]:
    """Every output of the job, compared row by row, as often as each row is there."""
    pairs = _pairs(events)
    return {
        "windows": _compare_windows(_parquet(disk / "windows"), events),
        "late": _compare(_late_rows(disk), (_late(order) for order in events.orders if order.kind == "ancient")),
        "followed": _compare(_followed_rows(disk), _followed(events)),
        "pairs": _compare(_pair_rows(disk), (pair[:4] for pair in pairs)),
        "revenue": _compare(_revenue_rows(disk), _revenue(pairs)),
    }


# -- the truth -----------------------------------------------------------------------------------------------------------


def _windows(events: Events) -> dict[tuple[str, int], tuple[int, int]]:
    """Per user and start of window: how many rows, and their amounts."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for order in events.orders:
        if order.kind != "ancient":
            at = (order.user, order.ts_ms - order.ts_ms % WINDOW_MS)
            n, total = found.get(at, (0, 0))
            found[at] = (n + 1, total + order.amount)
    return found


def _late(order: Order) -> tuple[Any, ...]:
    return (order.id, order.user, order.amount, order.ts_ms - order.ts_ms % WINDOW_MS + WINDOW_MS)


def _followed(events: Events) -> Iterable[tuple[Any, ...]]:
    cancelled = {order.of for order in events.orders if order.kind == "cancel"}
    numbers: Counter[str] = Counter()
    for order in events.orders:
        numbers[order.user] += 1
        yield "seen", order.id, order.user, numbers[order.user]
        if order.kind != "cancel" and order.id not in cancelled:
            yield "due", order.id, order.user, order.ts_ms + DEADLINE_MS


def _pairs(events: Events) -> list[tuple[Any, ...]]:
    """Order, user, payment, amount, and when the later of the two was."""
    orders = {order.id: order for order in events.orders if order.kind == "order"}
    found = []
    for payment in events.payments:
        order = orders[payment.of]
        if JOIN_MS[0] <= payment.ts_ms - order.ts_ms <= JOIN_MS[1]:
            found.append((order.id, order.user, payment.id, payment.paid, max(order.ts_ms, payment.ts_ms)))
    return found


def _revenue(pairs: list[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for _, user, _, paid, ts_ms in pairs:
        at = (user, ts_ms - ts_ms % REVENUE_MS)
        n, total = found.get(at, (0, 0))
        found[at] = (n + 1, total + paid)
    return ((*at, *value) for at, value in found.items())


# -- the job's output ----------------------------------------------------------------------------------------------------


def _late_rows(disk: Path) -> Iterable[tuple[Any, ...]]:
    return ((r["id"], r["user"], r["amount"], _ms(r["window_end"])) for r in _parquet(disk / "late"))


def _followed_rows(disk: Path) -> Iterable[tuple[Any, ...]]:
    return ((r["what"], r["id"], r["user"], r["number"]) for r in _json(disk / "followed"))


def _pair_rows(disk: Path) -> Iterable[tuple[Any, ...]]:
    return ((r["id"], r["user"], r["id_paid"], r["paid"]) for r in _parquet(disk / "pairs"))


def _revenue_rows(disk: Path) -> Iterable[tuple[Any, ...]]:
    return (
        (r["user"], _ms(datetime.fromisoformat(r["window_start"])), r["pairs"], r["paid"])
        for r in _json(disk / "revenue")
    )


def _parquet(folder: Path) -> Iterable[dict[str, Any]]:
    for path in sorted(folder.glob("*.parquet")):
        yield from pq.read_table(path).to_pylist()


def _json(folder: Path) -> Iterable[dict[str, Any]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            yield json.loads(line)


def _ms(time: datetime) -> int:
    return round(time.astimezone(UTC).timestamp() * 1000)


# -- the comparison ------------------------------------------------------------------------------------------------------


def _compare(found: Iterable[tuple[Any, ...]], expected: Iterable[tuple[Any, ...]]) -> Difference:
    there, wanted = Counter(found), Counter(expected)
    return Difference(sum(there.values()), lost=wanted - there, doubled=there - wanted)


def _compare_windows(rows: Iterable[dict[str, Any]], events: Events) -> Difference:
    """How often a window fires depends on epochs; that its firings count up from 0 and how it ends does not.

    A row of the difference is user, start, number of the firing, rows, amounts. Each firing must hold more than the one
    before it, the last one everything.
    """
    truth = _windows(events)
    panes: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    count = 0
    for row in rows:
        panes[row["user"], _ms(row["window_start"])].append((row["pane_index"], row["n"], row["total"]))
        count += 1
    found = Difference(count)
    for at in truth.keys() | panes.keys():
        fired = sorted(panes[at])
        last = max((index for index, _, _ in fired), default=0)
        kept = dict.fromkeys(range(last + 1), (0, 0))
        for index, n, total in fired:
            is_first, grows = kept[index] == (0, 0), n > kept.get(index - 1, (0, 0))[0]
            kept[index] = (n, total)
            if at not in truth or not (is_first and grows):
                found.doubled[(*at, index, n, total)] += 1
        if at in truth:
            missing = [(*at, index) for index, value in kept.items() if value == (0, 0)]
            if kept[last] != truth[at] and not missing:
                missing = [(*at, last, *truth[at])]
            found.lost.update(missing)
    return found
