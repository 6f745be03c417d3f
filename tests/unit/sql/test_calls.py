"""Operators of SQL work by columns: over ten times the rows they make hardly more calls, whatever the keys are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml
from tests.parts.calls import growth

import headwater as hw
from headwater.connectors.memory import MemorySink, RowsSource

CONSTRUCTS = yaml.safe_load((Path(__file__).parents[2] / "golden/sql/constructs.yaml").read_text())
FEW, MANY = 500, 5_000
MOST = 0.1
"""So many calls more for a row are none: some steps work in as many rounds as the logarithm of the rows."""


class Nowhere(MemorySink):
    """Takes rows, and leaves them alone."""

    def publish(self, epoch: int, files: Any) -> None:
        pass


def rows(count: int, factor: int) -> pa.Table:
    """Few keys and many, and times of ten seconds."""
    at = np.arange(count)
    return pa.table(
        {
            "id": at,
            "k": pa.array([f"k{key}" for key in at % 5]),
            "n": (at * factor % 31).astype(np.int32),
            "ts": pa.array(at * 10 // count * 1_000_000, pa.timestamp("us", "UTC")),
        }
    )


def job(query: str, count: int) -> Callable[[], Any]:
    env = hw.Environment("calls", engine="local")
    for name, factor in (("a", 7), ("b", 11)):
        table = rows(count, factor)
        source = RowsSource([table], hw.Schema.of(table.schema))
        stream = env.source(source, table.schema, hw.Watermarks.bounded("ts", "1 s"), name=f"given_{name}")
        env.create_view(name, stream, time="ts")
    ranked = "SELECT *, ROW_NUMBER() OVER (PARTITION BY {} ORDER BY ts DESC) AS r FROM {}"
    env.create_view("p", env.sql("SELECT id, k, n, PROCTIME() AS pt FROM a"))
    env.create_view("u", env.sql(f"SELECT id, k, n FROM ({ranked.format('id', 'a')}) WHERE r = 1"))
    env.create_view("v", env.sql(f"SELECT k, n, ts FROM ({ranked.format('k', 'b')}) WHERE r = 1"))
    keys = [f"k{key}" for key in range(5)]
    env.create_table("t", pa.table({"k": keys, "city": keys, "least": pa.array(range(5), pa.int32())}))
    env.sql(query).to_changelog().sink(Nowhere())
    return lambda: env.run(bounded=True)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_no_operator_makes_calls_for_rows(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert growth(lambda count: job(CONSTRUCTS[name], count), FEW, MANY) < MOST
