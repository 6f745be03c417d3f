from __future__ import annotations

import headwater as hw
from headwater.connectors.contract import Source
from headwater.connectors.memory import RowsSource
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.epoch import offsets
from headwater.epoch.backpressure import Unaligned
from headwater.graph.graph import Graph
from headwater.plan.plan import JobPlan, plan_job
from headwater.task.payload import EpochFacts, decode_payload
from headwater.task.split import SplitHost

SCHEMA = hw.Schema.of("n long")


def plan_of(*splits: int, rate: float | None = None) -> JobPlan:
    env = hw.Environment("offsets", engine="local")
    source = RowsSource([[(i,) for i in range(count)] for count in splits], SCHEMA)
    ends = hw.connectors.generator(lambda i: (i,), rate=rate) if rate else source
    stream = env.source(ends, SCHEMA, hw.Watermarks.bounded("n", "3 ms"), name="numbers")
    stream.rebalance().sink(hw.connectors.memory())
    return plan_job(env.graph, 2, 128)


def run_through(plan: JobPlan, max_rows: int) -> list[dict[str, int]]:
    targets = offsets.end_positions(plan)
    offset, found = offsets.first_offset(plan, lambda _: 0), []
    while (after := offsets.next_offset(plan, offset, lambda _: 0, max_rows, targets)) is not offset:
        offset = after
        found.append(offset.positions["numbers"])
    assert offset.end
    return found


def test_an_epoch_takes_no_more_rows_than_allowed_shared_by_the_splits() -> None:
    assert run_through(plan_of(5, 2), 4) == [{"0": 2, "1": 2}, {"0": 5, "1": 2}]
    assert run_through(plan_of(5, 2), 100) == [{"0": 5, "1": 2}]


def test_every_split_gets_on_even_when_there_are_more_than_rows_allowed() -> None:
    assert run_through(plan_of(1, 1, 1), 1) == [{"0": 1, "1": 1, "2": 1}]


def test_empty_input_ends_in_its_first_epoch() -> None:
    assert run_through(plan_of(0), 10) == [{"0": 0}]


def test_time_and_epochs_only_go_forward() -> None:
    plan = plan_of(0, rate=10.0)
    first = offsets.first_offset(plan, lambda _: 1_000)
    second = offsets.next_offset(plan, first, lambda _: 500, 10, None)
    assert (second.now_ms, second.epoch, second.end) == (1_000, 1, False)
    assert offsets.facts_of(second) == EpochFacts(0, 1_000)


def test_a_split_at_its_end_sends_the_last_watermark_while_others_go_on() -> None:
    plan = plan_of(5, 2)
    start = offsets.first_offset(plan, lambda _: 0)
    end = offsets.next_offset(plan, start, lambda _: 0, 4, offsets.end_positions(plan))
    assert [(r.split, r.start, r.end, r.ended) for r in offsets.ranges(plan, start, end)] == [
        ("0", 0, 2, False),
        ("1", 0, 2, True),
    ]


def test_a_run_that_goes_on_later_stops_at_its_targets_and_ends_nothing() -> None:
    plan = plan_of(0, rate=10.0)
    start = offsets.first_offset(plan, lambda _: 0)
    targets = offsets.positions_now(plan, start, lambda _: 2_000)
    assert targets == {"numbers": {"0": 20}}
    taken = [start]
    while not offsets.is_caught_up(taken[-1], targets, None):
        taken.append(offsets.next_offset(plan, taken[-1], lambda _: 5_000, 15, targets, goes_on=True))
    assert [(one.positions["numbers"]["0"], one.end) for one in taken[1:]] == [(15, False), (20, False)]
    assert not any(part.ended for part in offsets.ranges(plan, taken[-2], taken[-1]))
    assert not offsets.is_caught_up(taken[-1], targets, Unaligned(50, backlog=0.5)), "rows are in flight"


def test_a_split_with_rows_for_the_next_run_is_not_idle() -> None:
    plan = plan_job(_idle_after_a_second(hw.connectors.generator(lambda i: (i,), rate=10.0)), 2, 128)
    start = offsets.first_offset(plan, lambda _: 0)
    end = offsets.next_offset(plan, start, lambda _: 5_000, 15, {"numbers": {"0": 0}}, goes_on=True)
    assert (end.positions, end.active_ms) == ({"numbers": {"0": 0}}, {"numbers": {"0": 5_000}})


def _idle_after_a_second(source: Source) -> Graph:
    env = hw.Environment("offsets", engine="local")
    strategy = hw.Watermarks.monotonous("n").with_idleness("1 s")
    env.source(source, SCHEMA, strategy, name="numbers").sink(hw.connectors.memory())
    return env.graph


def test_an_endless_source_that_was_read_before_does_not_keep_a_bounded_run_from_its_end() -> None:
    plan = plan_of(0, rate=10.0)
    live = offsets.next_offset(plan, offsets.first_offset(plan, lambda _: 0), lambda _: 2_000, 100, None)
    assert live.positions == {"numbers": {"0": 20}}
    assert offsets.next_offset(plan, live, lambda _: 2_000, 100, offsets.end_positions(plan)).end


def watermark_of(start: int, end: int, *, ended: bool) -> set[int | None]:
    plan = plan_of(100)
    outcomes = list(SplitHost(plan, plan.sources()[0], "0").run(start, end, EpochFacts(0, 0), ended=ended))
    payloads = [decode_payload(data) for outcome in outcomes for _, data in outcome.payloads]
    return {p.watermark_ms for p in payloads if p.batch is None}


def test_a_split_sends_the_largest_time_less_delay_less_one() -> None:
    assert watermark_of(0, 50, ended=False) == {49 - 3 - 1}
    assert watermark_of(50, 50, ended=False) == {MIN_TIMESTAMP}
    assert watermark_of(50, 100, ended=True) == {MAX_TIMESTAMP}
