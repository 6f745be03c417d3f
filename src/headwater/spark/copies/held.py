"""The copies that a worker holds, and epochs computed on them: its own, and those that other workers were given.

Spark gives a subtask to whatever worker is idle. A worker without the current copy asks the one that has it to compute the
epoch, which costs a copy of what comes in and goes out; else each worker would come to hold a copy of every subtask and
read, epoch after epoch, what the others have changed. It brings a copy of its own up to date where nobody has one, or where
the one who has it is busy and holds too many.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from headwater.epoch.outbox import stage
from headwater.epoch.reports import LevelTimes, level_report
from headwater.errors import HeadwaterError
from headwater.plan.plan import JobPlan
from headwater.savepoints.origin import begin
from headwater.spark.copies.computed import Additions, Computed, ComputedForAnother, Place
from headwater.spark.copies.neighbours import Neighbours
from headwater.spark.copies.wire import Answer, Asked, Refusal
from headwater.spark.shipped import ShippedJob
from headwater.state.changelog import Head, RecordStore, append, catch_up
from headwater.task import garbage_collection
from headwater.task.closing import close_all
from headwater.task.host import LevelHost

_LOG = logging.getLogger("headwater.spark")
_T = TypeVar("_T")


class Copies:
    """What this worker holds of one run of a job."""

    def __init__(self, job: ShippedJob, plan: JobPlan, local_dir: Path | None) -> None:
        self._job, self._plan, self._local_dir = job, plan, local_dir
        self._hosts: dict[Place, LevelHost] = {}
        self._neighbours: Neighbours | None = None
        if local_dir is not None:
            self._neighbours = Neighbours(local_dir / f"headwater-{job.run_id}", self._answer)

    def epoch(self, place: Place, payloads: list[bytes], store: RecordStore) -> Computed:
        """An epoch of a subtask, on the copy that is current, wherever it is; what it adds is in the store."""
        times = LevelTimes()  # without what a new process imports
        head = store.head()
        if head is not None and not self._is_current(place, head):
            answer = self._asked(place, head, payloads)
            if isinstance(answer, HeadwaterError):
                raise answer
            if isinstance(answer, ComputedForAnother):
                answer.additions.write_to(store)
                return _timed(answer.computed, times)
        return _one_at_a_time().call(lambda: self._computed_here(place, payloads, store, times))

    def close(self) -> None:
        """Give all copies up."""
        if self._neighbours is not None:
            self._neighbours.close()
        hosts, self._hosts = self._hosts, {}  # who asks this worker later holds on to this, and not to state
        if hosts:
            _one_at_a_time().call(lambda: close_all(hosts.values()))

    def _is_current(self, place: Place, head: Head) -> bool:
        host = self._hosts.get(place)
        return host is not None and host.token == head.token

    def _asked(self, place: Place, head: Head, payloads: list[bytes]) -> Answer | None:
        if self._neighbours is None:
            return None
        return self._neighbours.ask(Asked(place, head, payloads, self._held(place.level)))

    def _held(self, level: int) -> int:
        """How many subtasks of a level there are copies of."""
        return sum(place.level == level for place in list(self._hosts))

    def _computed_here(self, place: Place, payloads: list[bytes], store: RecordStore, times: LevelTimes) -> Computed:
        if place not in self._hosts:
            self._hosts[place] = LevelHost(self._plan, place.level, place.subtask, local_dir=self._local_dir)
        host = self._hosts[place]
        before = host.token
        head = catch_up(host, store, str(place))
        was_behind = head is not None and before != head.token
        if was_behind:
            garbage_collection.set_aside()
        times.caught_up()
        if head is None:
            begin(host, self._plan, place.subtask, self._job.origin)
        done = self._computed(place, payloads, head, store)
        if self._neighbours is not None:
            self._neighbours.announce(place)
        return _timed(replace(done, report=replace(done.report, was_behind=was_behind)), times)

    def _computed(self, place: Place, payloads: list[bytes], head: Head | None, store: RecordStore) -> Computed:
        """Run the copy, which is at `head`, over an epoch, and stage what goes out."""
        host = self._hosts[place]
        host.token = None  # not to be trusted again before this attempt has come to its end
        outcome = host.run(payloads)
        written = append(host, store, head, uuid4().hex)
        outcome = host.weighed(outcome)
        name = f"l{place.level}-{place.subtask:04d}"
        staged = stage(self._plan, Path(self._job.outbox), outcome.epoch, name, outcome.sink_batches)
        return Computed(outcome.payloads, level_report(outcome, staged, written))

    def _answer(self, asked: Asked) -> Answer:
        """Compute an epoch for another worker, if the copy is here; in a thread that waits for the one that computes."""
        thread = _one_at_a_time()
        if thread.is_busy and self._held(asked.place.level) > asked.holds + 1:
            thread.submit(lambda: self._give_up(asked.place))
            return Refusal.BUSY
        return thread.call(lambda: self._computed_for(asked))

    def _computed_for(self, asked: Asked) -> Answer:
        if not self._is_current(asked.place, asked.head):
            self._give_up(asked.place)
            return Refusal.NOT_CURRENT
        additions = Additions(asked.head)
        try:
            return ComputedForAnother(self._computed(asked.place, asked.payloads, asked.head, additions), additions)
        except HeadwaterError as error:
            return error
        except Exception:
            _LOG.exception("%s: computing an epoch for another worker failed; that one does it itself", asked.place)
            self._give_up(asked.place)
            return Refusal.FAILED

    def _give_up(self, place: Place) -> None:
        """Another worker has the copy from now on."""
        if self._neighbours is not None:
            self._neighbours.withdraw(place)
        if place in self._hosts:
            self._hosts.pop(place).close()


def _timed(done: Computed, times: LevelTimes) -> Computed:
    return replace(done, report=times.told_by(done.report))


class _ComputingThread:
    """Computes one thing at a time, all in one thread: what user code opens may be for one thread alone.

    Jobs share it, as they share the worker.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "headwater-levels")
        self._last: Future[Any] | None = None

    @property
    def is_busy(self) -> bool:
        return self._last is not None and not self._last.done()

    def call(self, function: Callable[[], _T]) -> _T:
        """Call when it is its turn, and wait for it."""
        return self.submit(function).result()

    def submit(self, function: Callable[[], _T]) -> Future[_T]:
        """Call when it is its turn, with the garbage collector out of the way."""

        def called() -> _T:
            with garbage_collection.worker_task():
                return function()

        last = self._last = self._thread.submit(called)
        return last


@cache
def _one_at_a_time() -> _ComputingThread:
    return _ComputingThread()


os.register_at_fork(after_in_child=_one_at_a_time.cache_clear)  # a process that is forked has not this one's threads
