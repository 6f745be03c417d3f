"""EXPLAIN ANALYZE: what the steps of a job do while it runs."""

from __future__ import annotations

import re
from typing import Any

import pytest

import headwater as hw


def job(rows: list[Any], **settings: Any) -> hw.Environment:
    env = hw.Environment("analyzed", engine="local", parallelism=2, **settings)
    env.create_view("clicks", env.from_rows(rows, "session string, n long"))
    env.execute_sql("CREATE TABLE counts (session STRING, c BIGINT) WITH ('connector' = 'memory')")
    env.execute_sql("INSERT INTO counts SELECT session, COUNT(*) FROM clicks WHERE n > 0 GROUP BY session")
    return env


def cells(text: str) -> dict[str, list[str]]:
    """The facts of each step."""
    return {line.split()[0]: re.split(r"\s{2,}", line)[1:] for line in text.splitlines()[2:]}


def test_rows_time_state_and_skew_are_told_for_each_step() -> None:
    env = job([(f"s{n}", n % 4) for n in range(80)], max_rows_per_epoch=40)
    running = env.start(bounded=True, clock=lambda epoch: 1000 * max(0, epoch))
    running.wait()
    text = running.explain_analyze()
    assert text.splitlines()[0].endswith(" s")
    assert text.splitlines()[1].split()[:3] == ["step", "rows", "in"]
    rows_in, rate, rows_out, busy, entries, size, skew, state_skew = cells(text)["counts.aggregate"]
    assert (rows_in, rows_out, entries) == ("60", "60", "60")
    assert float(rate) > 0
    assert float(busy.removesuffix(" s")) > 0
    assert size == "893 B"  # of each a text of two or three letters, its place, and a count
    assert 1 <= float(skew) < 2
    assert 1 <= float(state_skew) < 2
    assert env.execute_sql("EXPLAIN ANALYZE") == [(text,)]


def test_a_key_with_all_rows_shows_as_skew() -> None:
    running = job([("s", 1)] * 50).start(bounded=True)
    running.wait()
    assert cells(running.explain_analyze())["counts.aggregate"][-2:] == ["2.00", "2.00"]


def test_a_job_must_run_to_be_analyzed() -> None:
    env = job([])
    with pytest.raises(hw.GraphError, match="shows a job that runs"):
        env.execute_sql("EXPLAIN ANALYZE")
    with pytest.raises(hw.SqlError, match="write it alone"):
        env.execute_sql("EXPLAIN ANALYZE SELECT * FROM clicks")
