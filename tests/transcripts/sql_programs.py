"""The programs of transcripts about SQL: queries over the rows of a transcript, in a table `rows`."""

from __future__ import annotations

from typing import Any

import headwater as hw
from headwater.streams.stream import Stream
from headwater.testing.transcript import Program


def queries(rows: Stream, view: str = "rows", **texts: str) -> dict[str, Stream]:
    """What each query gives, as a changelog. Programs that share a graph need views of different names."""
    env = rows._env
    env.create_view(view, rows.with_column("ts", "to_timestamp_ltz(ms, 3)"), time="ts")
    return {name: env.sql(text).to_changelog() for name, text in texts.items()}


def computed(rows: Stream) -> dict[str, Stream]:
    """Columns, conditions, the clock, and the windows of rows."""
    return queries(
        rows,
        main="SELECT k, n * 2 AS twice, ms FROM rows WHERE n > 1",
        clock="SELECT k, UNIX_TIMESTAMP() AS seconds FROM rows",
        hops="""SELECT k, EXTRACT(SECOND FROM window_start) AS start_at, EXTRACT(SECOND FROM window_end) AS end_at
            FROM TABLE(HOP(TABLE rows, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))""",
    )


def grouped(rows: Stream) -> dict[str, Stream]:
    """Groups that change, a condition on them, and an aggregate of all rows."""
    return queries(
        rows,
        main="SELECT k, COUNT(*) AS c, SUM(n) AS total FROM rows GROUP BY k",
        some="SELECT k FROM rows GROUP BY k HAVING SUM(n) < 5",
        all="SELECT MAX(total) AS largest FROM (SELECT k, SUM(n) AS total FROM rows GROUP BY k)",
    )


def sets(rows: Stream) -> dict[str, Stream]:
    """What is more often on one side, and what is on both."""
    left, right = (f"SELECT n FROM numbers WHERE k = '{key}'" for key in "ab")
    return queries(rows, "numbers", main=f"{left} EXCEPT ALL {right}", both=f"{left} INTERSECT ALL {right}")


def twice(number: int | None) -> int | None:
    return None if number is None else 2 * number


def called(rows: Stream) -> dict[str, Stream]:
    """A function of the user's, over rows, in a condition and over a sum that changes."""
    rows._env.create_function("twice", twice)
    return queries(
        rows,
        "given",
        main="SELECT k, twice(n) AS m FROM given WHERE twice(n) > 2",
        sums="SELECT k, twice(total) AS m FROM (SELECT k, SUM(n) AS total FROM given GROUP BY k)",
    )


def near(rows: Stream) -> dict[str, Stream]:
    """Pairs in an interval of time and in windows, and rows of which a further condition leaves none."""
    windows = "TABLE(TUMBLE(TABLE near, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
    return queries(
        rows,
        "near",
        main="""SELECT a.n AS a, b.n AS b FROM near a LEFT JOIN near b
            ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND AND a.n < b.n""",
        windows=f"""SELECT a.n AS a, b.n AS b FROM {windows} a LEFT JOIN {windows} b
            ON a.k = b.k AND a.window_start = b.window_start AND a.window_end = b.window_end AND a.n < b.n""",
        behind="""SELECT EXTRACT(SECOND FROM window_end) AS till, COUNT(*) AS c FROM TABLE(TUMBLE((SELECT a.ts FROM near a
            JOIN near b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '5' SECOND),
            DESCRIPTOR(ts), INTERVAL '4' SECOND)) GROUP BY window_start, window_end""",
    )


class Mean(hw.AggregateFunction[Any, Any, Any]):
    """The mean of whole numbers, which can take them back."""

    def create(self) -> Any:
        return (0, 0)

    def add(self, kept: Any, value: int) -> Any:
        return (kept[0] + value, kept[1] + 1)

    def retract(self, kept: Any, value: int) -> Any:
        return (kept[0] - value, kept[1] - 1)

    def merge(self, left: Any, right: Any) -> Any:
        return (left[0] + right[0], left[1] + right[1])

    def result(self, kept: Any) -> float:
        return float(kept[0] / kept[1])


def averaged(rows: Stream) -> dict[str, Stream]:
    """An aggregate of the user's over rows, and over sums that change."""
    rows._env.create_function("mean", Mean(), accumulator="struct<total:bigint,count:bigint>")
    return queries(
        rows,
        "measured",
        main="SELECT k, mean(n) AS m FROM measured GROUP BY k",
        sums="SELECT mean(total) AS m FROM (SELECT k, SUM(n) AS total FROM measured GROUP BY k)",
    )


def ranked(rows: Stream) -> dict[str, Stream]:
    """Rows by their place: Top-N with the number and without, first and last rows, different rows."""
    place = "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {}) AS r FROM ranked"
    return queries(
        rows,
        "ranked",
        main=f"SELECT k, n, r FROM ({place.format('n DESC')}) WHERE r <= 2",
        best=f"SELECT k, n FROM ({place.format('n DESC')}) WHERE r <= 2",
        first=f"SELECT k, n FROM ({place.format('ts')}) WHERE r = 1",
        last=f"SELECT k, n FROM ({place.format('ts DESC')}) WHERE r = 1",
        different="SELECT DISTINCT k FROM ranked",
    )


def over(rows: Stream) -> dict[str, Stream]:
    """Each row with those before it: all, two, and those of two seconds; and rows in the order of time."""
    window = "PARTITION BY k ORDER BY ts"
    return queries(
        rows,
        "measures",
        main=f"SELECT k, n, SUM(n) OVER ({window}) AS total FROM measures",
        two=f"SELECT n, SUM(n) OVER ({window} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM measures",
        range=f"""SELECT n, COUNT(*) OVER ({window} RANGE BETWEEN INTERVAL '2' SECOND PRECEDING AND CURRENT ROW) AS c
            FROM measures""",
        before=f"SELECT n, LAG(n) OVER ({window}) AS b FROM measures",
        sorted="SELECT n FROM measures ORDER BY ts",
    )


def joined(rows: Stream) -> dict[str, Stream]:
    """Pairs of all rows so far, with rows alone, and rows that have a partner or none."""
    left, right = (f"(SELECT k, n FROM sides WHERE n {sign} 10)" for sign in ("<", ">="))
    return queries(
        rows,
        "sides",
        main=f"SELECT a.n AS a, b.n AS b FROM {left} a JOIN {right} b ON a.k = b.k",
        outer=f"SELECT a.n AS a, b.n AS b FROM {left} a FULL JOIN {right} b ON a.k = b.k",
        some=f"SELECT n FROM {left} a WHERE k IN (SELECT k FROM {right} b)",
        none=f"SELECT n FROM {left} a WHERE NOT EXISTS (SELECT 1 FROM {right} b WHERE a.k = b.k)",
        totals=f"""SELECT a.n AS a, b.s AS s FROM {left} a
            JOIN (SELECT k, SUM(n) AS s FROM {right} GROUP BY k) b ON a.k = b.k""",
    )


PROGRAMS: dict[str, Program] = {
    "sql_computed": computed,
    "sql_grouped": grouped,
    "sql_sets": sets,
    "sql_called": called,
    "sql_near": near,
    "sql_averaged": averaged,
    "sql_ranked": ranked,
    "sql_over": over,
    "sql_joined": joined,
}
