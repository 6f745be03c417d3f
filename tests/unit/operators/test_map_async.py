"""Rows enriched by coroutines: order, how many calls at a time, retries, timeouts, and that nothing stays open."""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import headwater as hw
from headwater.streams.stream import Step, Stream
from headwater.testing import Harness

NUMBERS = "k string, n long"
LATE = hw.OutputTag("late", NUMBERS)
FOREVER = 3600.0
"""What a call waits that is to time out; no test waits for it."""


@pytest.fixture(autouse=True)
def no_thread_stays() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def stream_of(count: int = 3, **settings: Any) -> Stream:
    env = hw.Environment("async", engine="local", **settings)
    return env.from_rows([(f"k{n}", n) for n in range(1, count + 1)], NUMBERS, hw.Watermarks.monotonous("n"))


def numbers(step: Stream) -> list[int]:
    return [row.n for row in step.collect()]


class Gate:
    """Calls that end in the order that `order` gives: each waits for the one before it to be done."""

    def __init__(self, order: list[int]) -> None:
        self.order = order
        self.done: dict[int, asyncio.Event] = {}

    async def open(self) -> None:
        self.done = {n: asyncio.Event() for n in self.order}

    async def __call__(self, row: Any) -> Any:
        place = self.order.index(row.n)
        if place:
            await self.done[self.order[place - 1]].wait()
        self.done[row.n].set()
        return row


def test_results_come_in_the_order_of_the_input() -> None:
    assert numbers(stream_of().map_async(Gate([3, 1, 2]))) == [1, 2, 3]


def test_results_come_as_they_are_ready_when_order_does_not_matter() -> None:
    assert numbers(stream_of().map_async(Gate([3, 1, 2]), ordered=False)) == [3, 1, 2]


def test_a_result_keeps_the_time_of_its_row_and_none_drops_it() -> None:
    async def odd(row: Any) -> Any:
        return {"n": row.n * 10} if row.n % 2 else None

    with Harness(lambda s: s.map_async(odd, "n long"), NUMBERS) as harness:
        for n in (1, 2, 3):
            harness.push(("k", n), at=n * 100)
        assert [(row.n, row.timestamp) for row in harness.take()] == [(10, 100), (30, 300)]


class Counting:
    """Counts the calls in flight; all of a full house wait for each other, so that the count is the most there can be."""

    most: ClassVar[int] = 0
    now: ClassVar[int] = 0

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    async def open(self) -> None:
        self.full = asyncio.Event()

    async def __call__(self, row: Any) -> Any:
        cls = type(self)
        cls.now += 1
        cls.most = max(cls.most, cls.now)
        if cls.now == self.capacity:
            self.full.set()
        await self.full.wait()
        for _ in range(3):
            await asyncio.sleep(0)
        cls.now -= 1
        return row


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("capacity", [1, 4, 100])
def test_capacity_bounds_the_calls_in_flight_and_is_reached(capacity: int, ordered: bool) -> None:
    Counting.most = Counting.now = 0
    found = numbers(stream_of(200).map_async(Counting(capacity), capacity=capacity, ordered=ordered))
    assert sorted(found) == list(range(1, 201))
    assert Counting.most == capacity
    assert Counting.now == 0


def test_a_coroutine_may_be_a_partial_or_a_method() -> None:
    async def add(more: int, row: Any) -> Any:
        return (row.k, row.n + more)

    class Adder:
        async def add(self, row: Any) -> Any:
            return await add(7, row)

    assert numbers(stream_of(1).map_async(functools.partial(add, 5))) == [6]
    assert numbers(stream_of(1).map_async(Adder().add)) == [8]


class Flaky:
    """Fails with `error` for the first `failures` calls of each row."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures, self.error = failures, error
        self.calls: dict[int, int] = {}

    async def __call__(self, row: Any) -> Any:
        self.calls[row.n] = self.calls.get(row.n, 0) + 1
        if self.calls[row.n] <= self.failures:
            raise type(self.error)(*self.error.args)
        return (row.k, self.calls[row.n])


NO_DELAY = hw.Retry(attempts=3, delay="0 s")


def test_a_failed_call_is_made_again() -> None:
    assert numbers(stream_of().map_async(Flaky(2, ConnectionResetError("gone")), retry=NO_DELAY)) == [3, 3, 3]
    assert numbers(stream_of().map_async(Flaky(2, TimeoutError()), retry=NO_DELAY, timeout="1 h")) == [3, 3, 3]


def test_attempts_come_to_an_end() -> None:
    with pytest.raises(hw.UserCodeError, match=r"step 'map_async' failed at timestamp 1, .*: OSError: gone") as failed:
        stream_of().map_async(Flaky(3, OSError("gone")), retry=NO_DELAY).collect()
    assert "in __call__" in failed.value.traceback
    assert "headwater/operators" not in failed.value.traceback


def test_only_named_exceptions_are_tried_again() -> None:
    only = hw.Retry(attempts=3, delay="0 s", on=(KeyError,))
    assert numbers(stream_of(1).map_async(Flaky(1, KeyError("x")), retry=only)) == [2]
    with pytest.raises(hw.UserCodeError, match="OSError"):
        stream_of().map_async(Flaky(1, OSError()), retry=only).collect()
    with pytest.raises(hw.UserCodeError, match="OSError"):
        stream_of().map_async(Flaky(1, OSError())).collect()


def test_delays_grow_up_to_the_longest() -> None:
    fixed = hw.Retry(delay="20 ms", backoff=1)
    assert [fixed.delay_ms(n) for n in (1, 2, 9)] == [20, 20, 20]
    growing = hw.Retry(delay="20 ms", backoff=3.0, max_delay="1 s")
    assert [growing.delay_ms(n) for n in (1, 2, 3, 4, 5, 5000)] == [20, 60, 180, 540, 1000, 1000]


async def stuck_if_even(row: Any) -> Any:
    if row.n % 2 == 0:
        await asyncio.sleep(FOREVER)
    return row


def test_a_row_that_times_out_fails_the_job_and_says_the_way_out() -> None:
    with pytest.raises(
        hw.UserCodeError,
        match=r"step 'ask' failed at timestamp 2, .*: no result within 5 ms for Row\(k='k2', n=2\); "
        r"raise timeout=, or send such rows to a side output with timeout_to=hw.OutputTag\(...\)$",
    ):
        stream_of().map_async(stuck_if_even, timeout="5 ms", name="ask").collect()


@pytest.mark.parametrize("ordered", [True, False])
def test_a_row_that_times_out_goes_to_the_side_output_with_its_time(ordered: bool) -> None:
    def build(stream: Stream) -> Step:
        return stream.map_async(
            stuck_if_even, timeout="5 ms", timeout_to=LATE, retry=hw.Retry(attempts=9), ordered=ordered
        )

    with Harness(build, NUMBERS) as harness:
        for n in (1, 2, 3, 4):
            harness.push(("k", n), at=n * 100)
        assert [(row.n, row.timestamp) for row in harness.take()] == [(1, 100), (3, 300)]
        assert [(row.k, row.n, row.timestamp) for row in harness.take(LATE)] == [("k", 2, 200), ("k", 4, 400)]
    step = build(stream_of(4))
    assert numbers(step.side_output(LATE)) == [2, 4]


def test_the_timeout_is_for_all_attempts_of_a_row() -> None:
    """Each attempt would be quick enough; the delay between them is not."""
    slow = hw.Retry(attempts=2, delay="1 h", max_delay="1 h")
    step = stream_of(1).map_async(Flaky(1, OSError()), retry=slow, timeout="5 ms", timeout_to=LATE)
    assert numbers(step.side_output(LATE)) == [1]


def test_a_call_that_turns_its_cancellation_into_an_error_has_timed_out_all_the_same() -> None:
    async def stubborn(row: Any) -> Any:
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            raise OSError("interrupted") from None

    step = stream_of(1).map_async(stubborn, retry=hw.Retry(), timeout="5 ms", timeout_to=LATE)
    assert numbers(step.side_output(LATE)) == [1]


@pytest.mark.parametrize("error", [ZeroDivisionError("boom"), asyncio.CancelledError("boom"), SystemExit("boom")])
def test_a_call_that_raises_is_told_with_step_and_time(error: BaseException) -> None:
    async def boom(row: Any) -> Any:
        if row.n == 2:
            raise error
        await asyncio.sleep(FOREVER)

    kind = type(error).__name__
    with pytest.raises(hw.UserCodeError, match=f"step 'map_async' failed at timestamp 2, .*: .*{kind}: boom") as failed:
        stream_of().map_async(boom).collect()
    assert "in boom" in failed.value.traceback
    assert "headwater/operators" not in failed.value.traceback


def test_after_a_failure_no_further_row_is_taken_even_by_a_call_that_does_not_heed_it() -> None:
    seen: list[int] = []

    async def deaf(row: Any) -> Any:
        seen.append(row.n)
        if row.n == 2:
            raise ValueError("boom")
        try:
            await asyncio.sleep(FOREVER)
        except asyncio.CancelledError:
            return row

    with pytest.raises(hw.UserCodeError, match="ValueError: boom"):
        stream_of(9).map_async(deaf, capacity=2).collect()
    assert seen == [1, 2]


def test_a_result_that_does_not_fit_is_told_with_its_step() -> None:
    async def bare(row: Any) -> Any:
        return row.n

    with pytest.raises(hw.RowError, match=r"step 'map_async': expected a dict or tuple with k, n; got 1 \(int\)"):
        stream_of().map_async(bare).collect()


class Client:
    """Notes its life in a list of the class, because every place has a copy of its own."""

    life: ClassVar[list[str]] = []

    def __init__(self, fails_in: str = "") -> None:
        self.fails_in = fails_in

    def note(self, what: str) -> None:
        self.life.append(what)
        if what == self.fails_in:
            raise OSError(f"no {what}")

    async def open(self) -> None:
        self.note("open")
        self.background = asyncio.create_task(asyncio.sleep(FOREVER))

    async def __call__(self, row: Any) -> Any:
        assert not self.background.done()
        self.note("call")
        return row

    async def close(self) -> None:
        self.note("close")


@pytest.fixture
def life() -> list[str]:
    Client.life.clear()
    return Client.life


def test_a_client_is_opened_before_the_first_row_and_closed_at_the_end(life: list[str]) -> None:
    assert numbers(stream_of(3, max_rows_per_epoch=1).map_async(Client())) == [1, 2, 3]
    assert life == ["open", "call", "call", "call", "close"]


def test_without_rows_nothing_is_opened(life: list[str]) -> None:
    assert stream_of().where("n > 9").map_async(Client()).collect() == []
    assert life == []


def test_every_subtask_has_its_own(life: list[str]) -> None:
    assert sorted(numbers(stream_of(4, parallelism=2).rebalance().map_async(Client()))) == [1, 2, 3, 4]
    assert sorted(life) == ["call"] * 4 + ["close"] * 2 + ["open"] * 2


@pytest.mark.parametrize(
    ("fails_in", "lived"),
    [("open", ["open"]), ("call", ["open", "call", "close"]), ("close", ["open", "call", "close"])],
)
def test_a_client_that_fails_fails_the_job(life: list[str], fails_in: str, lived: list[str]) -> None:
    with pytest.raises(hw.UserCodeError, match=f"step 'map_async' failed.*: OSError: no {fails_in}") as failed:
        stream_of(1).map_async(Client(fails_in)).collect()
    assert life == lived
    assert "in note" in failed.value.traceback


def test_of_two_failures_the_first_is_told(life: list[str]) -> None:
    async def boom(row: Any) -> Any:
        raise ValueError("first")

    with pytest.raises(hw.UserCodeError, match="ValueError: first"):
        stream_of().map_async(Client("close")).map_async(boom).collect()
    assert life[-1] == "close"


def test_a_place_can_be_closed_and_used_again(life: list[str]) -> None:
    with Harness(lambda s: s.map_async(Client()), NUMBERS) as harness:
        harness.push(("a", 1))
        harness.close()
        harness.push(("a", 2))
    assert life == ["open", "call", "close"] * 2


def test_it_runs_where_a_loop_runs_already(life: list[str]) -> None:
    async def notebook() -> list[Any]:
        with Harness(lambda s: s.map_async(Client()), NUMBERS) as harness:
            harness.push(("a", 1))
            assert [row.n for row in harness.take()] == [1]
        return stream_of(1).map_async(Client()).collect()

    assert asyncio.run(notebook()) == [("k1", 1)]
    assert life == ["open", "call", "close"] * 2


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT interrupts, also in a process that was started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_whoever_waits_can_be_interrupted() -> None:
    ended: list[str] = []

    async def interrupted(row: Any) -> Any:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            await asyncio.sleep(FOREVER)
        finally:
            ended.append("cancelled")

    with Harness(lambda s: s.map_async(interrupted), NUMBERS) as harness, pytest.raises(KeyboardInterrupt):
        harness.push(("a", 1))
    assert ended == ["cancelled"]


async def good(row: Any) -> Any:
    return row


class SyncOpen:
    def open(self) -> None: ...

    async def __call__(self, row: Any) -> Any:
        return row


@pytest.mark.parametrize(
    ("function", "settings", "problem"),
    [
        (lambda r: r, {}, "needs a coroutine function, or an object with one as __call__"),
        (Client, {}, "needs a coroutine function"),
        (None, {}, "needs a coroutine function"),
        (SyncOpen(), {}, "awaits its function's open, which must be a coroutine function"),
        (good, {"capacity": 0}, "has a capacity of 1 call or more; got 0"),
        (good, {"capacity": True}, "has a capacity of 1 call or more; got True"),
        (good, {"timeout": "0 s"}, "needs a timeout of more than nothing"),
        (good, {"retry": 3}, r"needs a hw.Retry; got 3; write retry=hw.Retry\(attempts=3\)"),
        (good, {"timeout_to": LATE}, "has timeout_to but no timeout; got 'late'"),
        (good, {"timeout": "1 s", "timeout_to": "late"}, "sends rows that time out to a hw.OutputTag"),
        (
            good,
            {"timeout": "1 s", "timeout_to": hw.OutputTag("late", "n long")},
            "sends its input to timeout_to, which is 'k string, n bigint'; got 'n bigint'; give the tag that schema",
        ),
    ],
)
def test_bad_arguments_are_refused_when_the_graph_is_built(function: Any, settings: Any, problem: str) -> None:
    with pytest.raises(hw.GraphError, match=f"step 'map_async' {problem}"):
        stream_of().map_async(function, **settings)


def test_a_side_output_is_read_by_the_tag_it_is_written_with() -> None:
    step = stream_of().map_async(good, timeout="1 s", timeout_to=LATE)
    with pytest.raises(hw.GraphError, match="has a side output 'late' of schema 'k string, n bigint'"):
        step.side_output(hw.OutputTag("late", "n long"))


@pytest.mark.parametrize(
    "settings",
    [{"attempts": 0}, {"attempts": 1.5}, {"backoff": 0.5}, {"backoff": float("nan")}, {"on": OSError}, {"on": ("x",)}],
)
def test_a_retry_that_cannot_be_is_refused(settings: Any) -> None:
    with pytest.raises(hw.GraphError, match="step 'retry'"):
        hw.Retry(**settings)


def test_delays_of_a_retry_are_durations() -> None:
    with pytest.raises(hw.DurationError, match="delay of retry must be a duration; got 5"):
        hw.Retry(delay=5)  # type: ignore[arg-type]
