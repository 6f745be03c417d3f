"""Fraud detection: payments per card against rules that are added, changed and removed while the job runs.

    python examples/fraud_detection.py                  # in this process
    python examples/fraud_detection.py --engine spark   # the same job on Spark

Shows: broadcast state, which all cards read and only rules write; a new rule that looks back at what each card has paid;
a rules stream that is silent most of the time and does not hold event time back.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import headwater as hw
from headwater.testing import TimedRows

MINUTE_MS = 60 * 1000
KEPT_MS = 60 * MINUTE_MS
"""How long payments are kept: no rule can look back further."""
PAYMENT = "card string, ts timestamp, amount double"
RULE = "id string, ts timestamp, most double, minutes int, enabled boolean"
ALERT = "ts timestamp, card string, rule string, paid double"
RULES = hw.MapState("rules", "string", "struct<most: double, minutes: int>")


class FraudDetection(hw.KeyedBroadcastFunction):
    """A rule is broken by a card that pays more than `most` within `minutes`."""

    payments = hw.ListState("struct<ts: long, amount: double>")

    def process(self, payment: Any, ctx: hw.BroadcastContext) -> Iterator[dict[str, Any]]:
        """Keep the payment for an hour, and hold the card to the rules as they are now."""
        self.payments.add({"ts": ctx.timestamp, "amount": payment.amount})
        ctx.timers.event_time(ctx.timestamp + KEPT_MS)
        for name, rule in ctx.broadcast_state(RULES).items():
            yield from broken(name, rule, ctx.key, self.payments.get(), ctx.timestamp)

    def process_broadcast(self, change: Any, ctx: hw.BroadcastContext) -> Iterator[dict[str, Any]]:
        """Take over the change of a rule. One that is new or changed goes through all cards at once."""
        rules = ctx.broadcast_state(RULES)
        if not change.enabled:
            rules.remove(change.id)
            return
        rules.put(change.id, {"most": change.most, "minutes": change.minutes})
        alerts: list[dict[str, Any]] = []
        ctx.apply_to_keyed_state(
            self.payments,
            lambda card, kept: alerts.extend(broken(change.id, change, card, kept.get(), ctx.timestamp)),
        )
        yield from alerts

    def on_timer(self, timer: hw.Timer, ctx: hw.BroadcastContext) -> None:
        """Forget payments that are an hour old."""
        self.payments.update([kept for kept in self.payments.get() if kept.ts > timer.timestamp - KEPT_MS])


def broken(name: str, rule: Any, card: str, payments: list[Any], now_ms: int) -> Iterator[dict[str, Any]]:
    """An alert, if a card's payments break a rule now."""
    since_ms = now_ms - rule.minutes * MINUTE_MS
    paid = sum(payment.amount for payment in payments if since_ms < payment.ts <= now_ms)
    if paid > rule.most:
        yield {"ts": datetime.fromtimestamp(now_ms / 1000, UTC), "card": card, "rule": name, "paid": paid}


def at(minute: int) -> datetime:
    """A time on the day of the example."""
    return datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(minutes=minute)


CHANGES = [
    ("big", at(0), 500.0, 1, True),
    ("burst", at(4), 700.0, 5, True),  # added: bob's payments of the last five minutes break it
    ("big", at(6), 900.0, 1, True),  # changed
    ("burst", at(9), None, None, False),  # removed
]
PAYMENTS = [
    ("ann", at(1), 600.0),  # breaks "big"
    ("bob", at(2), 400.0),
    ("bob", at(3), 400.0),
    ("cat", at(5), 450.0),
    ("cat", at(6), 300.0),  # breaks "burst", together with the one before
    ("ann", at(7), 600.0),  # less than "big" is now
    ("bob", at(10), 450.0),
    ("bob", at(11), 450.0),  # would break "burst"
    ("ann", at(12), 950.0),  # breaks "big" as it is now
]


def live(rows: list[tuple[Any, ...]], schema: str) -> TimedRows:
    """The rows as they come, each at its time; rows have it in their second column."""
    return TimedRows([[(int((row[1] - at(0)).total_seconds() * 1000), row) for row in rows]], schema)


def main(engine: str, *, parallelism: int = 2) -> list[Any]:
    """Run the job over the payments and changes above, a minute an epoch; the alerts, in the order of time."""
    env = hw.Environment("fraud-detection", engine=engine, parallelism=parallelism, checkpoint_interval="1 ms")
    in_order = hw.Watermarks.monotonous("ts")
    payments = env.source(live(PAYMENTS, PAYMENT), PAYMENT, in_order, name="payments")
    changes = env.source(live(CHANGES, RULE), RULE, in_order.with_idleness("2 min"), name="changes")
    alerts = hw.connectors.memory()
    payments.key_by("card").connect(changes.broadcast(RULES)).process(FraudDetection(), ALERT).sink(alerts)
    env.run(clock=lambda epoch: max(epoch, 0) * MINUTE_MS)
    return sorted(alerts.rows)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    for alert in main(options.parse_args().engine):
        print(f"{alert.ts:%H:%M}  {alert.card} paid {alert.paid:.2f} and broke the rule '{alert.rule}'")
