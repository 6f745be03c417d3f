"""Orders and their payments: which orders were paid in time, which were not, and which payments nobody asked for.

    python examples/order_payments.py                  # in this process
    python examples/order_payments.py --engine spark   # the same job on Spark

Shows: an interval join with side outputs for what met nothing. A payment counts from one minute before its order (clocks
differ) to fifteen minutes after it. An order that is not paid shows once the watermark has passed that time.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Any

import headwater as hw

ORDER = "order_id long, ts timestamp, customer string, total double"
PAYMENT = "of long, ts timestamp, amount double"
UNPAID = hw.OutputTag("unpaid", ORDER)
UNASKED = hw.OutputTag("unasked", PAYMENT)


def at(minute: float) -> datetime:
    """A time on the day of the example."""
    return datetime(2026, 1, 1, 12, 0, tzinfo=UTC) + timedelta(minutes=minute)


ORDERS = [
    (1, at(0), "ann", 20.0),
    (2, at(1), "bob", 35.0),
    (3, at(2), "cat", 12.5),
    (4, at(30), "ann", 99.0),
]
PAYMENTS = [
    (1, at(3), 20.0),
    (2, at(4), 15.0),
    (2, at(5), 20.0),
    (9, at(6), 5.0),
    (3, at(17.5), 12.5),  # half a minute too late
    (4, at(29.5), 99.0),  # before its order, by the clock of the bank
]


def main(engine: str, *, max_rows_per_epoch: int = 1_000_000) -> tuple[list[Any], list[Any], list[Any]]:
    """Run the job; gives paid orders, unpaid orders and payments without an order."""
    env = hw.Environment("order_payments", engine=engine, max_rows_per_epoch=max_rows_per_epoch)
    by_ts = hw.Watermarks.bounded("ts", "1 min")
    orders = env.from_rows(ORDERS, ORDER, by_ts, name="orders").key_by("order_id")
    payments = env.from_rows(PAYMENTS, PAYMENT, by_ts, name="payments").key_by("of")
    paid = orders.interval_join(
        payments, between=("-1 min", "15 min"), unmatched_left=UNPAID, unmatched_right=UNASKED, suffix="_paid"
    )
    outputs = [
        paid.select("order_id", "customer", "total", "amount", "ts_paid"),
        paid.side_output(UNPAID),
        paid.side_output(UNASKED),
    ]
    sinks = [hw.connectors.memory() for _ in outputs]
    for number, (output, sink) in enumerate(zip(outputs, sinks, strict=True)):
        output.sink(sink, name=f"sink-{number}")
    env.run()
    pairs, unpaid, unasked = (sorted(sink.rows) for sink in sinks)
    return pairs, unpaid, unasked


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    pairs, unpaid, unasked = main(options.parse_args().engine)
    for pair in pairs:
        print(
            f"order {pair.order_id} of {pair.customer}: {pair.amount:.2f} of {pair.total:.2f} at {pair.ts_paid:%H:%M:%S}"
        )
    for order in unpaid:
        print(f"order {order.order_id} of {order.customer}: not paid")
    for payment in unasked:
        print(f"payment of {payment.amount:.2f} for order {payment.of}: no such order at that time")
