from __future__ import annotations

from typing import Any

import pytest

import headwater as hw
from headwater.connectors.memory import RowsSource
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.plan.plan import plan_job
from headwater.task.payload import EpochFacts, decode_payload
from headwater.task.split import SplitHost

SCHEMA = hw.Schema.of("ts long, mark long")
ROWS = [(10, None), (40, 5), (30, 25), (20, None), (50, 12)]


class SecondLargest(hw.WatermarkGenerator):
    """What only a generator can do: it looks at all rows of the epoch."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_event(self, event: Any, timestamp: int) -> int | None:
        self.seen.append(timestamp)
        return None

    def on_periodic(self) -> int | None:
        return sorted(self.seen)[-2] if len(self.seen) > 1 else None


class Both(hw.WatermarkGenerator):
    def on_event(self, event: Any, timestamp: int) -> int | None:
        return timestamp - 100 + (event.mark or 0)

    def on_periodic(self) -> int | None:
        return -1_000


class Endless(hw.WatermarkGenerator):
    def on_event(self, event: Any, timestamp: int) -> int | None:
        return 1 << 80


def host_of(strategy: hw.Watermarks) -> SplitHost:
    env = hw.Environment("split", engine="local")
    rows = env.source(RowsSource([ROWS], SCHEMA), SCHEMA, strategy, name="rows")
    rows.rebalance().sink(hw.connectors.memory())
    plan = plan_job(env.graph, 2, 128)
    return SplitHost(plan, plan.sources()[0], "0")


def sent(host: SplitHost, start: int, end: int, *, ended: bool = False, idle: bool = False) -> list[bytes]:
    outcomes = host.run(start, end, EpochFacts(3, 7), ended=ended, idle=idle)
    return [data for outcome in outcomes for _, data in outcome.payloads]


def words(payloads: list[bytes]) -> set[tuple[int | None, bool]]:
    """What the payloads without rows say; every subtask hears the same."""
    found = [payload for payload in map(decode_payload, payloads) if payload.batch is None]
    assert len(found) == 2
    return {(payload.watermark_ms, payload.idle) for payload in found}


def by_mark(row: Any) -> int | None:
    mark: int | None = row.mark
    return mark


@pytest.mark.parametrize(
    ("strategy", "start", "end", "watermark"),
    [
        (hw.Watermarks.none(), 0, 5, MIN_TIMESTAMP),
        (hw.Watermarks.monotonous("ts"), 0, 3, 39),
        (hw.Watermarks.bounded("ts", "15 ms"), 0, 3, 24),
        (hw.Watermarks.punctuated("ts", by_mark), 0, 5, 25),
        (hw.Watermarks.punctuated("ts", by_mark), 4, 5, 12),
        (hw.Watermarks.punctuated("ts", by_mark), 0, 1, MIN_TIMESTAMP),
        (hw.Watermarks.custom("ts", SecondLargest), 0, 5, 40),
        (hw.Watermarks.custom("ts", SecondLargest), 3, 5, 20),
        (hw.Watermarks.custom("ts", SecondLargest), 3, 4, MIN_TIMESTAMP),
        (hw.Watermarks.custom("ts", SecondLargest), 3, 3, MIN_TIMESTAMP),
        (hw.Watermarks.custom("ts", Both), 0, 5, 50 - 100 + 12),
        (hw.Watermarks.custom("ts", Endless), 0, 5, MAX_TIMESTAMP - 1),
    ],
)
def test_a_strategy_says_the_watermark_of_a_range(
    strategy: hw.Watermarks, start: int, end: int, watermark: int
) -> None:
    host = host_of(strategy)
    found = sent(host, start, end)
    assert words(found) == {(watermark, False)}
    assert sent(host, start, end) == found, "the same host, asked again"
    sent(host, 0, 2)
    assert sent(host, start, end) == found == sent(host_of(strategy), start, end), "whatever it was asked before"
    assert words(sent(host, start, end, ended=True)) == {(MAX_TIMESTAMP, False)}


def test_idleness_is_said_with_the_watermark() -> None:
    assert words(sent(host_of(hw.Watermarks.monotonous("ts")), 2, 2, idle=True)) == {(MIN_TIMESTAMP, True)}


def fails(row: Any) -> int:
    raise ValueError("no mark")


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        (
            hw.Watermarks.punctuated("ts", fails),
            "step 'rows' failed at timestamp 10, .*: ValueError: no mark",
        ),
        (
            hw.Watermarks.punctuated("ts", lambda row: 1.5),
            "failed at timestamp 10, .*: TypeError: 'float' object",
        ),  # type: ignore[arg-type,return-value]
        (hw.Watermarks.custom("ts", lambda: fails(None)), "step 'rows' failed: ValueError: no mark"),  # type: ignore[arg-type,return-value]
        (hw.Watermarks.custom("ts", lambda: 5), "'rows' needs a WatermarkGenerator from its factory; got 5"),  # type: ignore[arg-type,return-value]
    ],
)
def test_a_strategy_that_fails_is_told_with_its_source(strategy: hw.Watermarks, message: str) -> None:
    with pytest.raises(hw.HeadwaterError, match=message):
        sent(host_of(strategy), 0, 5)
