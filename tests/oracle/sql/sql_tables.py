"""The tables that statements are tried on, in the form that FlinkSql.java takes.

A table has `columns` in Flink's types, and `rows` in the order in which they come: decimals and times are text, a map is
a list of pairs, a row a list. With `time` it has an event time, whose watermark is `delay_ms` behind and follows every
row. `kinds` says what each row does; with `key` it is an upsert, unless rows are taken back with `-U`. Rows of one with
`lookup` can only be looked up.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

Table = dict[str, Any]


def at(seconds: float) -> str:
    """So many seconds after the start of 2024."""
    return (dt.datetime.fromisoformat("2024-01-01") + dt.timedelta(seconds=seconds)).isoformat()


def _table(columns: str, rows: list[tuple[Any, ...]], **more: Any) -> Table:
    """Columns are written `name TYPE; name TYPE`; a number in a column of times is seconds."""
    typed = [column.strip().split(" ", 1) for column in columns.split(";")]
    times = [number for number, (_, dtype) in enumerate(typed) if dtype.startswith("TIMESTAMP")]
    made = [
        [at(value) if number in times and value is not None else value for number, value in enumerate(row)]
        for row in rows
    ]
    return {"columns": typed, "rows": made, **more}


ORDERS = _table(
    "id BIGINT; k STRING; amount INT; price DECIMAL(10, 2); x DOUBLE; note STRING; ts TIMESTAMP(3)",
    [
        (1, "a", 5, "1.25", 1.5, "one", 1),
        (2, "b", 7, "0.10", -2.0, "two", 4),
        (3, "a", None, "3.00", None, None, 2),
        (4, None, 2, None, 0.25, "", 9),
        (5, "c", 5, "1.25", 10.0, "five", 12),
        (6, "a", -3, "99.99", 3.5, "One", 10),
        (7, "b", 0, "0.00", 0.0, "two", 17.5),
        (8, "a", 5, "2.50", 1.5, "a,b", 21),
        (9, None, None, None, None, "nine", 25),
        (10, "c", 12, "7.77", -1.0, "ten", 24),
        (11, "b", 7, "0.20", 2.0, None, 29.999),
        (12, "a", 1, "5.00", 100.0, "end", 41),
        (13, "d", None, None, None, None, 38),
    ],
    time="ts",
    delay_ms=5000,
)
EVENTS = _table(
    "id BIGINT; k STRING; n INT; ts TIMESTAMP(3)",
    [
        (1, "a", 1, 1),
        (2, "b", 2, 8),
        (3, "a", 4, 12),
        (4, "a", 8, 9.5),
        (5, "a", 16, 3),
        (6, "b", 32, 15),
        (7, "c", 64, 4),
        (8, "a", 128, 23),
        (9, "b", 256, 14),
        (10, "b", 512, 21),
        (11, "c", 1024, 60),
        (12, "c", 2048, 30),
        (13, "c", 4096, 58.5),
        (14, "a", 8192, 59.999),
    ],
    time="ts",
    delay_ms=1000,
)
PAYMENTS = _table(
    "pid BIGINT; order_id BIGINT; k STRING; paid INT; ts TIMESTAMP(3)",
    [
        (100, 1, "a", 5, 3),
        (101, 2, "b", 3, 6),
        (102, 2, "b", 4, 11),
        (103, 5, "c", 5, 8),
        (104, None, None, 1, 13),
        (105, 99, "z", 9, 14),
        (106, 6, "a", 2, 20),
        (107, 8, "a", None, 22),
        (108, 10, "c", 12, 40),
    ],
    time="ts",
    delay_ms=3000,
)
CLICKS = _table(
    "who STRING; url STRING; ts TIMESTAMP_LTZ(3)",
    [
        ("ann", "/", 0),
        ("bob", "/a", 1),
        ("ann", "/b", 4),
        ("ann", "/", 15),
        ("bob", "/", 17),
        ("ann", "/a", 19),
        ("bob", "/b", 40),
        (None, "/", 42),
        ("ann", "/c", 41),
    ],
    time="ts",
    delay_ms=2000,
)
RATES = _table(
    "currency STRING NOT NULL; rate DECIMAL(10, 4); ts TIMESTAMP(3)",
    [
        ("EUR", "1.1000", 0),
        ("GBP", "1.3000", 5),
        ("EUR", "1.2000", 10),
        ("GBP", None, 18),
        ("EUR", "1.0500", 30),
    ],
    time="ts",
    delay_ms=0,
    key=["currency"],
)
RATE_CHANGES = _table(
    "currency STRING NOT NULL; rate DECIMAL(10, 4); ts TIMESTAMP(3)",
    [("EUR", "1.1000", 0), ("GBP", "1.3000", 5), ("EUR", "1.2000", 10), ("GBP", "1.3000", 18), ("EUR", "1.05", 30)],
    time="ts",
    delay_ms=0,
    key=["currency"],
    kinds=["+I", "+I", "+U", "-D", "+U"],
)
DEALS = _table(
    "id INT; currency STRING; amount INT; ts TIMESTAMP(3)",
    [(1, "EUR", 10, 1), (2, "GBP", 20, 3), (3, "EUR", 5, 12), (4, "USD", 7, 11), (5, "GBP", 1, 20), (6, None, 2, 25)],
    time="ts",
    delay_ms=2000,
)
ACCOUNTS = _table(
    "id BIGINT; owner STRING; balance INT",
    [
        (1, "ann", 10),
        (2, "bob", 20),
        (3, "ann", 30),
        (1, "ann", 10),
        (1, "ann", 15),
        (2, "bob", 20),
        (4, "cid", None),
        (3, "ann", 30),
        (3, "dan", 30),
        (5, "cid", 30),
    ],
    kinds=["+I", "+I", "+I", "-U", "+U", "-D", "+I", "-U", "+U", "+I"],
)
USERS = _table(
    "uid BIGINT NOT NULL; name STRING; city STRING",
    [
        (1, "ann", "Rome"),
        (2, "bob", "Oslo"),
        (1, "ann", "Oslo"),
        (3, "cid", None),
        (2, "bob", "Oslo"),
        (4, "dan", "Rome"),
        (3, "cid", "Rome"),
    ],
    key=["uid"],
    kinds=["+I", "+I", "+U", "+I", "-D", "+I", "+U"],
)
NESTED = _table(
    "id INT; tags ARRAY<STRING>; m MAP<STRING, INT>; r ROW<a INT, b STRING>; items ARRAY<ROW<q INT, s STRING>>",
    [
        (1, ["x", "y"], [["k", 1], ["l", 2]], [1, "q"], [[1, "one"], [2, None]]),
        (2, [], [], [None, None], []),
        (3, ["z", None, "z"], [["k", None]], [3, None], [[None, "none"]]),
        (4, None, None, None, None),
    ],
)
PLACES = _table(
    "kk STRING; city STRING; least INT; big BIGINT",
    [("a", "Rome", 2, 1), ("b", "Oslo", None, 2), ("a", "Bonn", 5, 3), (None, "none", 0, 4), ("d", None, 1, 5)],
    lookup=True,
)
WORDS = _table(
    "id INT; s STRING; v STRING; flag BOOLEAN; d DATE; dt TIMESTAMP(3)",
    [
        (1, "Hello World", "12", True, "2024-02-29", 3661),
        (2, "", "-7", False, "2023-12-31", 86399.999),
        (3, None, None, None, None, None),
        (4, "a_b%c", "1.5", True, "1999-01-01", 0),
        (5, "Hello World", "abc", None, "2024-02-29", 90000),
        (6, "hello", "", False, "2024-03-01", 31536000),
    ],
)
TABLES: dict[str, Table] = {
    "orders": ORDERS,
    "events": EVENTS,
    "payments": PAYMENTS,
    "clicks": CLICKS,
    "rates": RATES,
    "rate_changes": RATE_CHANGES,
    "rate_versions": RATE_CHANGES,
    "deals": DEALS,
    "accounts": ACCOUNTS,
    "users": USERS,
    "nested": NESTED,
    "places": PLACES,
    "words": WORDS,
}


def used(statement: str) -> list[str]:
    """The tables that a statement names."""
    words = set(re.findall(r"\w+", statement))
    return [name for name in TABLES if name in words]


def has_late_rows(table: Table) -> bool:
    """Whether some row comes after the watermark has passed its time: then it counts how rows are cut into epochs."""
    if "time" not in table:
        return False
    column = [name for name, _ in table["columns"]].index(table["time"])
    latest: dt.datetime | None = None
    for row in table["rows"]:
        if row[column] is None:
            continue
        when = dt.datetime.fromisoformat(row[column])
        if latest is not None and when <= latest - dt.timedelta(milliseconds=table["delay_ms"]):
            return True
        latest = when if latest is None else max(latest, when)
    return False
