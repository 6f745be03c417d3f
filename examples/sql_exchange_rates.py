"""Payments in one currency: each with the exchange rate that was valid when it was made, also if that came later.

    python examples/sql_exchange_rates.py                  # in this process
    python examples/sql_exchange_rates.py --engine spark   # the same job on Spark

Shows: streams as tables, a versioned table by ROW_NUMBER, a temporal join, a query as a stream.
"""

from __future__ import annotations

import argparse
from typing import Any

import headwater as hw

RATES = [("EUR", 1.10, 0), ("GBP", 1.30, 0), ("EUR", 1.20, 20_000)]
PAYMENTS = [(1, "EUR", 100.0, 5_000), (2, "GBP", 10.0, 10_000), (3, "EUR", 100.0, 25_000), (4, "EUR", 50.0, 19_000)]


def main(engine: str, max_rows_per_epoch: int = 1_000_000) -> list[tuple[Any, ...]]:
    """Payments in dollars."""
    env = hw.Environment("sql-exchange-rates", engine=engine, max_rows_per_epoch=max_rows_per_epoch)
    marks = hw.Watermarks.bounded("ms", "10 s")
    rates = env.from_rows(RATES, "currency string, rate double, ms long", marks, name="given_rates")
    payments = env.from_rows(PAYMENTS, "id long, currency string, amount double, ms long", marks, name="given_payments")
    env.create_view("rates", rates.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    env.create_view("payments", payments.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    env.execute_sql("""
        CREATE VIEW versions AS SELECT currency, rate, ts FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY ts DESC) AS place FROM rates) WHERE place = 1
    """)
    dollars = env.sql("""
        SELECT p.id, p.amount * v.rate AS dollars
        FROM payments AS p JOIN versions FOR SYSTEM_TIME AS OF p.ts AS v ON p.currency = v.currency
    """)
    sink = hw.connectors.memory()
    dollars.to_stream().sink(sink)
    env.run(bounded=True)
    return sorted(tuple(row) for row in sink.rows)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    for number, amount in main(options.parse_args().engine):
        print(f"{number}  {amount:8.2f}")
