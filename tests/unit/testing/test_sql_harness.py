"""Queries driven by hand: rows into tables, changes out, snapshots in between."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from headwater.testing import Harness

ORDERS = {"orders": "id long, currency string, ts timestamp", "rates": "currency string, rate long, ts timestamp"}


def at(ms: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(ms / 1000, dt.UTC)


def told(harness: Harness, *columns: str) -> list[tuple[Any, ...]]:
    return [(row.row_kind, *(getattr(row, column) for column in columns)) for row in harness.take()]


def test_a_key_makes_rows_replace_each_other() -> None:
    query = "SELECT rate, COUNT(*) AS n FROM rates GROUP BY rate"
    harness = Harness.sql(query, {"rates": ORDERS["rates"]}, keys={"rates": "currency"})
    harness.push(("EUR", 5, None))
    harness.push({"currency": "EUR", "rate": 6, "ts": None}, kind="+U")
    harness.push(("EUR", None, None), kind="-D")
    assert told(harness, "rate", "n") == [("+I", 5, 1), ("-D", 5, 1), ("+I", 6, 1), ("-D", 6, 1)]


def test_the_time_column_is_the_time_of_rows() -> None:
    query = """SELECT COUNT(*) AS n, window_end AS e
        FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end"""
    harness = Harness.sql(query, {"orders": ORDERS["orders"]}, time={"orders": "ts"})
    harness.push_all([(1, "EUR", at(1000)), (2, "EUR", at(9000)), (3, "EUR", at(12_000))])
    assert harness.take() == []
    harness.watermark(9_999)
    (row,) = harness.take()
    assert (row.row_kind, row.n, row.timestamp) == ("+I", 2, 9_999)


def test_a_snapshot_goes_on() -> None:
    def made(snapshot: bytes | None = None, parallelism: int = 1) -> Harness:
        query = """SELECT o.id, r.rate FROM orders AS o
            JOIN rates FOR SYSTEM_TIME AS OF o.ts AS r ON o.currency = r.currency"""
        return Harness.sql(
            query,
            ORDERS,
            time={"orders": "ts", "rates": "ts"},
            keys={"rates": "currency"},
            snapshot=snapshot,
            parallelism=parallelism,
        )

    harness = made()
    harness.push(("EUR", 5, at(10)), to="rates")
    harness.push(("EUR", 6, at(20)), to="rates", kind="+U")
    harness.push((1, "EUR", at(15)), to="orders")
    saved = harness.snapshot()
    harness.watermark(30)
    assert told(harness, "id", "rate") == [("+I", 1, 5)]
    again = made(saved, parallelism=2)
    again.push((2, "EUR", at(25)), to="orders")
    again.watermark(30)
    assert sorted(told(again, "id", "rate")) == [("+I", 1, 5), ("+I", 2, 6)]


def test_processing_time_moves_by_hand() -> None:
    harness = Harness.sql("SELECT id, UNIX_TIMESTAMP() AS s FROM orders", {"orders": "id long"})
    harness.advance_to(5_000)
    harness.push((1,))
    assert told(harness, "id", "s") == [("+I", 1, 5)]


def test_what_cannot_be_is_refused() -> None:
    harness = Harness.sql("SELECT id FROM orders", {"orders": "id long"})
    with pytest.raises(ValueError, match=r"a row of 'orders' is \+I"):
        harness.push((1,), kind="-D")
    with pytest.raises(ValueError, match="the query's tables are orders; got 'rates'"):
        Harness.sql("SELECT id FROM orders", {"orders": "id long"}, keys={"rates": "currency"})
    keyed = Harness.sql("SELECT id FROM orders", {"orders": "id long"}, keys={"orders": "id"})
    with pytest.raises(ValueError, match="one of"):
        keyed.push((1,), kind="+X")
