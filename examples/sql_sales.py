"""Sales in SQL: what each shop has sold so far, which changes, and what it sold in each minute, which does not.

    python examples/sql_sales.py                  # in this process
    python examples/sql_sales.py --engine spark   # the same job on Spark

Shows: a table over a topic of the event log, a view, two INSERT INTO as one job, a group that changes, a window.
"""

from __future__ import annotations

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import headwater as hw

SCRIPT = """
    CREATE TABLE orders (id BIGINT, shop STRING, price DOUBLE, ts TIMESTAMP_LTZ(3),
      WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
    ) WITH ('connector' = 'log', 'path' = '{folder}', 'topic' = 'orders');
    CREATE TABLE so_far (shop STRING, total DOUBLE) WITH ('connector' = 'memory');
    CREATE TABLE per_minute (minute_end TIMESTAMP(3), shop STRING, n BIGINT) WITH ('connector' = 'memory');

    CREATE VIEW paid AS SELECT * FROM orders WHERE price > 0;

    INSERT INTO so_far SELECT shop, SUM(price) FROM paid GROUP BY shop;
    INSERT INTO per_minute SELECT window_end, shop, COUNT(*)
      FROM TABLE(TUMBLE(TABLE paid, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
      GROUP BY window_start, window_end, shop;
"""
ORDERS = [
    (1, "books", 12.0, datetime(2026, 1, 1, 10, 0, 5, tzinfo=UTC)),
    (2, "tools", 40.0, datetime(2026, 1, 1, 10, 0, 40, tzinfo=UTC)),
    (3, "books", 0.0, datetime(2026, 1, 1, 10, 0, 50, tzinfo=UTC)),
    (4, "books", 8.0, datetime(2026, 1, 1, 10, 0, 55, tzinfo=UTC)),
    (5, "books", 5.0, datetime(2026, 1, 1, 10, 1, 10, tzinfo=UTC)),
]


def main(engine: str, folder: Path) -> tuple[list[Any], list[Any]]:
    """Write orders, run the script over them; what each shop has sold, and what in each minute."""
    topic = hw.EventLog(folder / "log").create_topic("orders", "id long, shop string, price double, ts timestamp")
    topic.append(ORDERS)
    env = hw.Environment("sql-sales", engine=engine, job_dir=folder / "job")
    env.run_sql(SCRIPT.format(folder=folder / "log"), bounded=True)
    totals = {row.shop: row.total for row in env.table_rows("so_far") if row.row_kind in ("+I", "+U")}
    minutes = [(row.minute_end.minute, row.shop, row.n) for row in env.table_rows("per_minute")]
    return sorted(totals.items()), sorted(minutes)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=["local", "spark"], default="local")
    with tempfile.TemporaryDirectory() as temporary:
        for rows in main(options.parse_args().engine, Path(temporary)):
            print(*rows, sep="\n")
