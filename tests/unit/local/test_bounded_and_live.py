"""A recording read to its end gives what the same recording gave live, for every watermark strategy without late rows."""

from __future__ import annotations

import random

import pytest

import headwater as hw
from headwater.testing import TimedRows

SCHEMA = "k string, v long, ts long"


class EveryTenth(hw.WatermarkGenerator):
    """Says the largest time it saw less the delay, for every tenth row and at the end of an epoch."""

    def __init__(self) -> None:
        self._seen, self._highest = 0, -(1 << 62)

    def on_event(self, event, timestamp):
        self._seen += 1
        self._highest = max(self._highest, timestamp)
        return self._highest - 31 if self._seen % 10 == 0 else None

    def on_periodic(self):
        return self._highest - 31


STRATEGIES = {
    "none": hw.Watermarks.none(),
    "monotonous": hw.Watermarks.monotonous("ts"),
    "bounded": hw.Watermarks.bounded("ts", "30 ms"),
    "punctuated": hw.Watermarks.punctuated("ts", lambda row: row.ts - 31 if row.v % 5 == 0 else None),
    "custom": hw.Watermarks.custom("ts", EveryTenth),
    "idle": hw.Watermarks.bounded("ts", "30 ms").with_idleness("10 s"),
    "aligned": hw.Watermarks.bounded("ts", "30 ms").aligned("all", "100 ms"),
}

WINDOWS = {
    "tumbling": lambda s: s.window(hw.tumbling("50 ms")),
    "sliding": lambda s: s.window(hw.sliding("60 ms", "20 ms")),
    "session": lambda s: s.window(hw.session("12 ms")),
}


CASES = [(strategy, windows) for strategy in STRATEGIES if strategy != "none" for windows in WINDOWS]


def recording(*, ordered: bool) -> list[list[tuple[int, tuple[str, int, int]]]]:
    """Three splits, up to 30 ms out of order, readable as time goes by."""
    dice = random.Random(7)
    splits = []
    for _ in range(3):
        rows, at = [], 0
        for _ in range(100):
            at += dice.choice((1, 2, 3, 20))
            rows.append((at, (dice.choice("abc"), dice.randrange(10), at if ordered else at - dice.randrange(30))))
        splits.append(rows)
    return splits


@pytest.mark.parametrize(("strategy", "windows"), [("none", "by count"), *CASES])
def test_bounded_equals_live(strategy, windows):
    splits = recording(ordered=strategy == "monotonous")
    found = {}
    for name, rate in {"bounded": None, "live": 7}.items():
        env = hw.Environment(name, engine="local", parallelism=2, checkpoint_interval="1 ms")
        readable = [[(0 if rate is None else at, row) for at, row in rows] for rows in splits]
        stream = env.source(TimedRows(readable, SCHEMA), SCHEMA, STRATEGIES[strategy])
        if strategy == "none":
            keyed = stream.key_by("k")
            step = keyed.window(hw.count(7)).agg(n=hw.count())
        else:
            step = WINDOWS[windows](stream.key_by("k")).agg(n=hw.count(), total=hw.sum("v"), top=hw.max("v"))
        sink = hw.connectors.memory()
        step.sink(sink)
        job = env.run(bounded=rate is None, clock=lambda epoch, rate=rate: (rate or 1) * (epoch + 1))
        assert job.status().steps[env.graph.uid(env.graph.node(step._flow.origin))]["late_dropped"] == 0
        found[name] = sorted(map(repr, sink.rows))
        assert job.status().epoch >= (0 if rate is None else 50)
    assert found["bounded"] == found["live"]
    assert len(found["live"]) > 20
