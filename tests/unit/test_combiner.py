"""Rows combined before the shuffle give what they give uncombined."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import headwater as hw
from headwater.data.batch import Batch
from headwater.data.rows import encode_rows
from headwater.operators.window import slicing

SCHEMA = "k string, v long, ts long"


def run(rows: list[dict[str, object]], windows: hw.WindowAssigner, parallelism: int = 2) -> tuple[list[object], int]:
    env = hw.Environment("combined", engine="local", parallelism=parallelism, max_rows_per_epoch=300)
    source = hw.testing.TimedRows([[(0, row) for row in rows[i::3]] for i in range(3)], SCHEMA)
    sink = hw.connectors.memory()
    stream = env.source(source, SCHEMA, hw.Watermarks.bounded("ts", "5 ms"))
    stream.key_by("k").window(windows).allow_lateness("3 ms").agg(
        n=hw.count(),
        total=hw.sum("v"),
        low=hw.min("v"),
        mean=hw.avg("v"),
        spread=hw.var("v"),
        kinds=hw.count_distinct("v"),
    ).sink(sink)
    job = env.run(bounded=True)
    return sink.rows, job.status().steps["window_agg"]["late_dropped"]


def shown(row: Any) -> tuple[str, ...]:
    """A result as it is compared: a variance up to rounding."""
    return tuple(map(repr, row._replace(spread=round(row.spread or 0, 9))))


@pytest.mark.parametrize("windows", [hw.tumbling("50 ms"), hw.sliding("60 ms", "20 ms"), hw.cumulate("10 ms", "40 ms")])
def test_combined_rows_give_the_same(windows, monkeypatch):
    dice = random.Random(3)
    rows = [
        {"k": dice.choice("abc"), "v": dice.randrange(9), "ts": at // 4 - dice.choice((0, 0, 0, 0, 3, 70))}
        for at in range(2000)
    ]
    combined = run(rows, windows)
    monkeypatch.setattr(slicing.WindowCombiner, "combine", lambda self, batch: None)
    plain = run(rows, windows)
    assert len(combined[0]) > 20
    assert sorted(map(shown, combined[0])) == sorted(map(shown, plain[0]))
    assert combined[1] == plain[1] > 0


def test_combining_is_left_when_it_would_not_pay():
    env = hw.Environment("plain", engine="local")
    rows = [{"k": str(i), "v": i, "ts": i} for i in range(100)]
    step = env.source(hw.testing.TimedRows([[(0, r) for r in rows]], SCHEMA), SCHEMA, hw.Watermarks.monotonous("ts"))
    windowed = step.key_by("k").window(hw.tumbling("1 s")).agg(n=hw.count())
    combiner = slicing.WindowCombiner(env.graph.node(windowed._flow.origin), "agg")

    def batch(keys):
        table = encode_rows([(k, 1, 1) for k in keys], hw.Schema.of(SCHEMA).arrow, "test")
        return Batch(table, np.arange(len(keys)))

    assert combiner.combine(batch([str(i) for i in range(100)])) is None
    few = combiner.combine(batch(["a", "b"] * 50))
    assert few is not None
    assert len(few) == 2
