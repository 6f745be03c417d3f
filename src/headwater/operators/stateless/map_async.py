"""Rows enriched by coroutines: many calls to another system at a time, each with its retries and its timeout."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headwater.data.batch import Batch, timestamp_list
from headwater.data.rows import Row
from headwater.errors import UserCodeError
from headwater.graph.nodes import MapAsyncNode
from headwater.operators.stateless.event_loop import LoopThread
from headwater.operators.stateless.failed_rows import FailedRows
from headwater.operators.stateless.functions import Outputs, rows_of
from headwater.operators.user_code import own_copy, user_code_failed
from headwater.retry import Retry

_ONCE = Retry(attempts=1)
_ENDINGS = (SystemExit, KeyboardInterrupt)
"""What a function may raise beside errors. `GeneratorExit` is also how Python closes a coroutine: it is seen in `_run`."""


@dataclass
class _Call:
    """All calls for one batch: the rows that wait, and what has come of the others, in the order of completion."""

    waiting: deque[tuple[int, Row]]
    times: list[int | None]
    results: list[tuple[int, Any]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    failed: FailedRows = field(kw_only=True)

    def stop_if_failed(self, worker: asyncio.Task[None]) -> None:
        """Take no further row once a worker has failed, even if another one does not heed that it is cancelled."""
        if worker.cancelled() or worker.exception() is not None:
            self.waiting.clear()


class MapAsyncOperator:
    """One row or none for each row, by a coroutine function. A batch is complete before the next one is taken.

    The loop's thread starts, and the function opens, with the first rows.
    """

    def __init__(self, node: MapAsyncNode, step: str, row: type[Row]) -> None:
        self._node, self._step, self._row = node, step, row
        self._retry = node.retry or _ONCE
        self._timeout_s = None if node.timeout_ms is None else node.timeout_ms / 1000
        self._loop: LoopThread | None = None

    def apply(self, batch: Batch) -> Outputs:
        loop = self._loop or self._open()
        failed = FailedRows(batch, self._node.failed_to, self._step)
        waiting = deque(enumerate(rows_of(batch.table, self._row)))
        call = _Call(waiting, timestamp_list(batch.timestamps), failed=failed)
        loop.run(self._run(call, min(self._node.capacity, len(batch))))
        if self._node.ordered:
            call.results.sort(key=lambda result: result[0])
            call.late.sort()
        kept = [(at, row) for at, row in call.results if row is not None]
        results = failed.results([row for _, row in kept], _indices(at for at, _ in kept), self._node.schema)
        outputs: list[tuple[str | None, Batch]] = [(None, results), *failed.output()]
        if self._node.timeout_to is not None:
            outputs.append((self._node.timeout_to.name, batch.take(_indices(call.late))))
        return outputs

    def close(self) -> None:
        """Close the function and its loop."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.run(self._attend("close"))
            finally:
                loop.close()

    def _open(self) -> LoopThread:
        self._function = own_copy(self._node.function, self._step)  # each place has its own
        loop = LoopThread(f"headwater-{self._step}")
        try:
            loop.run(self._attend("open"))
        except BaseException:
            loop.close()
            raise
        self._loop = loop
        return loop

    async def _attend(self, name: str) -> None:
        method: Callable[[], Awaitable[None]] | None = getattr(self._function, name, None)
        if method is not None:
            try:
                await method()
            except (Exception, *_ENDINGS) as error:
                raise user_code_failed(error, self._step) from None

    async def _run(self, call: _Call, places: int) -> None:
        """So many workers take the waiting rows in turn; when one fails, the others are cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(places):
                    group.create_task(self._work(call)).add_done_callback(call.stop_if_failed)
        except BaseExceptionGroup as failures:
            raise user_code_failed(failures.exceptions[0], self._step) from None

    async def _work(self, call: _Call) -> None:
        while call.waiting:
            at, row = call.waiting.popleft()
            try:
                async with asyncio.timeout(self._timeout_s):
                    call.results.append((at, await self._result(row, call.times[at])))
            except TimeoutError:
                if self._node.timeout_to is not None:
                    call.late.append(at)
                else:
                    call.failed.add(at, UserCodeError.timed_out(self._step, row, call.times[at], self._node.timeout_ms))
            except UserCodeError as error:
                call.failed.add(at, error)
            await asyncio.sleep(0)  # a call that never waits must not hold up the others until they time out

    async def _result(self, row: Row, timestamp: int | None) -> Any:
        """The function's result, after as many attempts as it takes and may take."""
        failed = 0
        while True:
            try:
                return await self._function(row)
            except (Exception, *_ENDINGS, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if task is not None and task.cancelling():  # by us: the row timed out, or another one failed
                    raise asyncio.CancelledError from None
                failed += 1
                if failed == self._retry.attempts or not isinstance(error, self._retry.on):
                    raise user_code_failed(error, self._step, timestamp=timestamp) from None
            await asyncio.sleep(self._retry.delay_ms(failed) / 1000)


def _indices(places: Iterable[int]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.fromiter(places, np.int64)
