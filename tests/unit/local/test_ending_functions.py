"""What would end a process or a thread ends a job as any error of user code does: it fails, and says where."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import pytest

import headwater as hw

ROWS = [("a", 1), ("b", 2)]
SCHEMA = "k string, n long"


def _exit(*_: Any) -> NoReturn:
    sys.exit(0)


def _interrupt(*_: Any) -> NoReturn:
    raise KeyboardInterrupt


def _close(*_: Any) -> NoReturn:
    raise GeneratorExit


class OwnEnd(BaseException):
    """What no library can know of."""


def _own(*_: Any) -> NoReturn:
    raise OwnEnd


ENDS = [_exit, _interrupt, _close, _own]


class Ends(hw.KeyedProcessFunction):
    def __init__(self, end: Callable[..., Any]) -> None:
        self._end = end

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self._end()
        yield event


class EndsAtTimer(hw.KeyedProcessFunction):
    def __init__(self, end: Callable[..., Any]) -> None:
        self._end = end

    def process(self, event: Any, ctx: hw.Context) -> None:
        ctx.timers.processing_time(0)

    def on_timer(self, timer: Any, ctx: Any) -> Iterator[Any]:
        self._end()
        yield ("a", 1)


class EndsInOpen(hw.ProcessFunction):
    def __init__(self, end: Callable[..., Any]) -> None:
        self._end = end

    def open(self) -> None:
        self._end()

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        yield event


def _coroutine(end: Callable[..., Any]) -> Any:
    async def call(row: Any) -> Any:
        end()

    return call


PLACES: dict[str, Callable[[Any, Callable[..., Any]], Any]] = {
    "map": lambda s, end: s.map(end, SCHEMA),
    "flat_map": lambda s, end: s.flat_map(end, SCHEMA),
    "filter": lambda s, end: s.filter(end),
    "map_batches": lambda s, end: s.map_batches(end, SCHEMA),
    "process": lambda s, end: s.process(EndsInOpen(end), SCHEMA),
    "key": lambda s, end: s.key_by(end, type="string").process(Ends(print), SCHEMA),
    "keyed process": lambda s, end: s.key_by("k").process(Ends(end), SCHEMA),
    "timer": lambda s, end: s.key_by("k").process(EndsAtTimer(end), SCHEMA),
    "session gap": lambda s, end: s.key_by("k").window(hw.processing_time(hw.session(by=end))).agg(n=hw.count()),
    "map_async": lambda s, end: s.map_async(_coroutine(end), SCHEMA),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_function_that_ends_fails_the_job(place: str, end: Callable[..., Any]) -> None:
    env = hw.Environment("ending", engine="local")
    stream = PLACES[place](env.from_rows(ROWS, SCHEMA), end)
    with pytest.raises(hw.UserCodeError) as caught:
        stream.with_uid("step").collect()
    assert caught.value.step == "step"
    assert end.__name__ in caught.value.traceback


def test_a_restart_strategy_sees_it() -> None:
    env = hw.Environment("ending", engine="local", restart=hw.restart.fixed(2, delay="1 ms"))
    env.from_rows(ROWS, SCHEMA).key_by("k").process(Ends(_exit), SCHEMA).sink(hw.connectors.memory())
    job = env.start()
    with pytest.raises(hw.UserCodeError, match="SystemExit: 0"):
        job.wait()
    status = job.status()
    assert (status.state, [r.error for r in status.restarts]) == ("failed", ["UserCodeError"] * 2)


class EndingSource(hw.connectors.Source):
    bounded = True

    def check(self, schema: Any) -> None: ...

    def earliest(self) -> dict[str, int]:
        return {"0": 0}

    def latest(self, start: dict[str, int], elapsed_ms: int) -> dict[str, int]:
        return {"0": 1}

    def read(self, split: str, start: int, end: int) -> NoReturn:
        sys.exit(0)

    def describe(self) -> str:
        return "a source that ends"


def test_a_connector_that_ends_fails_the_job() -> None:
    env = hw.Environment("ending", engine="local")
    env.source(EndingSource(), SCHEMA).print()
    with pytest.raises(hw.JobError, match="job 'ending' stopped: SystemExit: 0"):
        env.run()
