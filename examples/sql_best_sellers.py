"""Best sellers: the two products with the highest mean price by quantity, as sales come.

    python examples/sql_best_sellers.py                  # in this process
    python examples/sql_best_sellers.py --engine spark   # the same job on Spark

Shows: an aggregate function in Python, Top-N over groups that change, and what both keep.
"""

from __future__ import annotations

import argparse
from typing import Any

import headwater as hw

SALES = [("pen", 2.0, 10), ("ink", 9.0, 1), ("cap", 20.0, 1), ("pen", 3.0, 10), ("cap", 1.0, 9), ("nib", 4.0, 2)]


class MeanPrice(hw.AggregateFunction[Any, Any, Any]):
    """The mean of prices by quantity."""

    def create(self) -> Any:
        """Nothing is sold."""
        return (0.0, 0)

    def add(self, sold: Any, price: float, quantity: int) -> Any:
        """One sale more."""
        return (sold[0] + price * quantity, sold[1] + quantity)

    def merge(self, left: Any, right: Any) -> Any:
        """What was sold in two epochs."""
        return (left[0] + right[0], left[1] + right[1])

    def result(self, sold: Any) -> float:
        """The mean, of at least one."""
        return float(sold[0] / sold[1])


def main(engine: str, max_rows_per_epoch: int = 1_000_000) -> tuple[dict[int, tuple[str, float]], str]:
    """The products by place, and what the query keeps for it."""
    env = hw.Environment("sql-best-sellers", engine=engine, max_rows_per_epoch=max_rows_per_epoch)
    env.create_view("sales", env.from_rows(SALES, "product string, price double, quantity int"))
    env.create_function("mean_price", MeanPrice(), accumulator="struct<paid:double,sold:bigint>")
    best = env.sql("""
        SELECT place, product, mean FROM (
          SELECT *, ROW_NUMBER() OVER (ORDER BY mean DESC) AS place FROM (
            SELECT product, mean_price(price, quantity) AS mean FROM sales GROUP BY product))
        WHERE place <= 2
    """)
    found = {row.place: (row.product, row.mean) for row in best.collect() if row.row_kind in ("+I", "+U")}
    return found, best.explain("state")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    for shown in main(options.parse_args().engine):
        print(shown)
