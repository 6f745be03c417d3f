from __future__ import annotations

import threading
from typing import Any

import pytest

import headwater as hw
from headwater.restart import MachineTime, RestartStrategy

S, MIN, H = 1_000, 60_000, 3_600_000


def delays(strategy: RestartStrategy, *failed_ms: int) -> list[int | None]:
    count = strategy.begin()
    return [count.delay_ms(at) for at in failed_ms]


def test_none_never_starts_again() -> None:
    assert delays(hw.restart.none(), 0, H) == [None, None]


def test_fixed_gives_up_after_its_attempts_however_far_apart() -> None:
    assert delays(hw.restart.fixed(3, delay="2 s"), 0, H, 24 * H, 48 * H) == [2 * S, 2 * S, 2 * S, None]


def test_each_run_of_a_job_counts_for_itself() -> None:
    strategy = hw.restart.fixed(1, delay="0 s")
    assert delays(strategy, 0, 1) == delays(strategy, 0, 1) == [0, None]


def test_exponential_doubles_up_to_its_maximum() -> None:
    strategy = hw.restart.exponential(initial="1 s", max="5 min")
    assert delays(strategy, *range(10)) == [*(2**n * S for n in range(9)), 5 * MIN]


def test_exponential_is_as_at_first_after_a_quiet_run() -> None:
    strategy = hw.restart.exponential(initial="1 s", reset_after="1 h")
    restarted = 5 * S + 2 * S
    assert delays(strategy, 0, 5 * S, restarted + H) == [S, 2 * S, S]
    assert delays(strategy, 0, 5 * S, restarted + H - 1) == [S, 2 * S, 4 * S], "the wait is no part of the run"


def test_exponential_counts_attempts_from_the_last_quiet_run() -> None:
    strategy = hw.restart.exponential(initial="1 s", reset_after="1 h", attempts=2)
    assert delays(strategy, 0, 2 * S, 5 * S) == [S, 2 * S, None]
    assert delays(strategy, 0, 2 * S, 2 * H, 2 * H + 2 * S, 2 * H + 5 * S) == [S, 2 * S, S, 2 * S, None]


def test_exponential_takes_any_multiplier_above_one() -> None:
    strategy = hw.restart.exponential(initial="10 ms", max="1 min", multiplier=1.5)
    assert delays(strategy, 0, 1, 2, 3) == [10, 15, 22, 33]
    assert delays(hw.restart.exponential(multiplier=1e300), 0, 1, 2) == [S, 5 * MIN, 5 * MIN]


def test_failure_rate_allows_so_many_failures_within_the_span() -> None:
    strategy = hw.restart.failure_rate(2, per="1 min", delay="5 s")
    assert delays(strategy, 0, S, 2 * S) == [5 * S, 5 * S, None]
    assert delays(strategy, 0, 30 * S, MIN) == [5 * S, 5 * S, None], "the ends of the span belong to it"
    assert delays(strategy, *range(0, 10 * MIN, 31 * S)) == [5 * S] * 20


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: hw.restart.fixed(0), "restart.fixed' needs attempts of 1 or more; got 0; use restart.none()"),
        (lambda: hw.restart.fixed(True), "needs attempts of 1 or more"),
        (lambda: hw.restart.failure_rate(0), "restart.failure_rate' needs failures of 1 or more"),
        (lambda: hw.restart.failure_rate(1, per="0 s"), "needs a span of 1 ms or more"),
        (lambda: hw.restart.exponential(attempts=0), "restart.exponential' needs attempts of 1 or more"),
        (lambda: hw.restart.exponential(initial="10 min"), "at first no longer than at last"),
        (lambda: hw.restart.exponential(initial="0 s"), "waits at least 1 ms"),
        (lambda: hw.restart.exponential(multiplier=1.0), "multiplies its delay by more than 1"),
        (
            lambda: hw.Environment("job", restart=3),
            "'environment' needs a restart strategy; got 3; use one of hw.restart",
        ),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(hw.GraphError, match=message):
        make()


def test_durations_are_checked_by_name() -> None:
    with pytest.raises(hw.DurationError, match=r"delay of restart\.fixed must be a duration; got 10"):
        hw.restart.fixed(3, delay=10)  # type: ignore[arg-type]


def test_strategies_describe_themselves() -> None:
    described = [
        hw.restart.none(),
        hw.restart.fixed(3),
        hw.restart.exponential(attempts=9),
        hw.restart.failure_rate(3),
    ]
    assert [strategy.describe() for strategy in described] == [
        "none()",
        "fixed(3, delay='10000 ms')",
        "exponential(initial='1000 ms', max='300000 ms', multiplier=2.0, reset_after='3600000 ms', attempts=9)",
        "failure_rate(3, per='300000 ms', delay='10000 ms')",
    ]


def test_the_wait_ends_when_the_job_is_stopped() -> None:
    stopping = threading.Event()
    waiter = threading.Thread(target=MachineTime().wait, args=(24 * H, stopping))
    waiter.start()
    stopping.set()
    waiter.join(60)
    assert not waiter.is_alive()
