"""What a job's state will cost, asked of a sample: some rows go through the whole job on the local engine, into no sink."""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.connectors.blackhole import BlackholeSink
from headwater.connectors.contract import Source
from headwater.connectors.dataframes import DataFrameSource
from headwater.connectors.memory import RowsSource
from headwater.durations import Duration, duration_ms, duration_text
from headwater.epoch.clock import wall_clock
from headwater.epoch.steps import EpochStep
from headwater.errors import GraphError, JobError
from headwater.graph.graph import Graph
from headwater.graph.nodes import SourceNode
from headwater.job.engine import Job, Settings
from headwater.job.growth.explanation import StateExplanation, explained_state
from headwater.local.engine import LocalEngine
from headwater.plan.plan import JobPlan
from headwater.streams.given_rows import rows_of
from headwater.streams.overrides import check_may_start

Sample = int | Duration | Mapping[str, Any]
"""So many rows, or what comes in a time, or rows by the uids of sources."""
_EPOCHS = 48
"""In so many epochs a sample of rows is read: enough to see how state goes on."""
_ROWS_BY_TIME = 10_000
"""At most so many of each source are in an epoch of a sample that has a time."""
_QUIET_EPOCHS, _QUIET_S = 3, 5.0
"""A sample has come to its end when so many epochs gave no row; where more may come, when none came for so long."""


class Samples(ABC):
    """What an environment has to tell of state."""

    graph: Graph

    @abstractmethod
    def plan(self) -> JobPlan:
        """The job as the engines run it."""

    @abstractmethod
    def _plan(self, graph: Graph) -> JobPlan:
        """Another graph, with the settings of the job."""

    def explain_state(self, *, sample: Sample | None = None, rows_per_second: float | None = None) -> StateExplanation:
        """What each step keeps, per what, until when and how to bound it; with a sample also how much, and how it grows.

        `sample` is a number of rows, a time to read for, such as "10 s", or rows or a table for each source by its uid:
        `{"orders": rows}`. They go through the job on the local engine, in this process, and no sink gets any. Growth is
        told by event time where the rows have it; `rows_per_second`, of all sources together, makes processing time pass
        with the rows, which is needed where they have none, and lets a ttl in processing time take effect.

        >>> import headwater as hw
        >>> env = hw.Environment("doc", engine="local")
        >>> orders = env.from_rows([(f"user {n}", n) for n in range(960)], "user string, n long")
        >>> orders.key_by("user").agg(total=hw.sum("n")).sink(hw.connectors.blackhole())  # doctest: +ELLIPSIS
        <...>
        >>> told = env.explain_state(sample=960, rows_per_second=1)["agg"]
        >>> [(size.name, size.entries, round(size.growth.entries_per_hour)) for size in told.sizes]
        [('kept', 960, 3600)]
        >>> told.grows, told.ways_out[0]
        ('for ever', 'group by a window, whose state goes with it')
        """
        if sample is None:
            return explained_state(self.plan())
        if rows_per_second is not None and not rows_per_second > 0:
            raise GraphError.bad_argument(
                "explain_state", "needs rows_per_second above 0", rows_per_second, "say how many rows come"
            )
        check_may_start()
        self.graph.validate()
        given = _given(self.graph, sample) if isinstance(sample, Mapping) else {}
        plan = self._plan(self.graph.between_ends(given, BlackholeSink()).with_own_sources())
        for node in plan.sources():
            if isinstance(node.source, DataFrameSource):
                raise JobError.not_supported(
                    f"a sample of source {node.name!r} cannot be read: a DataFrame is Spark's",
                    f"give rows for it, as sample={{{node.name!r}: rows}}",
                )
        return _Sampling(plan, _Enough.of(sample, plan, given), rows_per_second).run()


def _given(graph: Graph, rows: Mapping[str, Any]) -> dict[str, Source]:
    """Sources of the rows that are given for some."""
    nodes = {graph.uid(node): node for node in graph if isinstance(node, SourceNode)}
    found: dict[str, Source] = {}
    for uid, some in rows.items():
        if uid not in nodes:
            raise GraphError.bad_argument(
                "explain_state", f"samples sources: {', '.join(nodes)}", uid, "name one of them"
            )
        table, schema = rows_of(some, nodes[uid].schema, uid)
        found[uid] = RowsSource([table], schema)
    return found


@dataclass(frozen=True)
class _Enough:
    """How much of its input a sample has; what is None does not bound it."""

    rows: int | None
    ms: int | None
    each: int
    """The rows of an epoch."""

    @classmethod
    def of(cls, sample: Sample, plan: JobPlan, given: Mapping[str, Source]) -> _Enough:
        if isinstance(sample, Mapping):
            rows = sum(sum(source.latest(source.earliest(), 0).values()) for source in given.values())
            return cls(None, None, max(1, rows // _EPOCHS))
        if isinstance(sample, int):
            if sample < 1:
                raise GraphError.bad_argument("explain_state", "needs a sample of 1 row or more", sample, "raise it")
            return cls(sample, None, max(1, sample // _EPOCHS // max(1, len(plan.sources()))))
        return cls(None, duration_ms(sample, what="the sample of explain_state"), _ROWS_BY_TIME)


class _Sampling:
    """One run over a sample: whether it has seen enough, and what time it is in it."""

    def __init__(self, plan: JobPlan, enough: _Enough, rows_per_second: float | None) -> None:
        self._plan, self._enough, self._rows_per_second = plan, enough, rows_per_second
        self._bounded = all(node.source.bounded for node in plan.sources())
        self._has_own_rate = False
        self._rows = self._rows_epoch = 0
        self._began_s = self._rows_s = time.monotonic()
        self._start_ms = wall_clock(0)
        self._ready = threading.Event()
        self._job: Job | None = None

    def run(self) -> StateExplanation:
        """Let the job run until it has seen enough."""
        for node in self._plan.sources():
            node.source.bounded = False  # the end of the sample is not that of the input, at which all would fire
        settings = Settings(
            job_dir=None,
            checkpoint_interval_ms=1,
            checkpoints_retained=2,
            max_rows_per_epoch=self._enough.each,
            bounded=False,
            on_step=self._see,
            clock=self._now_ms,
        )
        job = self._job = LocalEngine().start(self._plan, settings)
        self._ready.set()
        try:
            job.wait()
        except BaseException:
            job.stop()
            raise
        told = job.explain_state()
        at = "" if self._rows_per_second is None else f" at {self._rows_per_second:g} a second"
        within = "" if self._enough.ms is None else f" of {duration_text(self._enough.ms)}"
        return StateExplanation(told.job, told.steps, f"in a sample{within} of {self._rows:,} rows{at}")

    def _now_ms(self, epoch: int) -> int:
        """The time of an epoch: that of its rows, if somebody said how fast they come; or what a clock shows.

        Where no row comes while time stands still, a source gives rows by time itself.
        """
        self._has_own_rate = self._has_own_rate or (not self._rows and epoch >= _QUIET_EPOCHS)
        if self._has_own_rate or (self._enough.ms is not None and self._rows_per_second is None):
            return wall_clock(epoch)
        return self._start_ms + int(self._rows * 1000 / (self._rows_per_second or math.inf))

    def _see(self, step: EpochStep, epoch: int) -> None:
        """Called between epochs, on the thread that runs them: when enough was seen, no more are begun."""
        self._ready.wait()
        if step is not EpochStep.CLEANED:
            return
        job = self._job
        assert job is not None
        rows = sum(one.rows_in for splits in job.status().splits.values() for one in splits.values())
        now_s = time.monotonic()
        if rows > self._rows:
            self._rows, self._rows_epoch, self._rows_s = rows, epoch, now_s
        if self._is_enough(epoch, now_s):
            job.begin_stop(None, drain=False)

    def _is_enough(self, epoch: int, now_s: float) -> bool:
        enough = self._enough
        if enough.rows is not None and self._rows >= enough.rows:
            return True
        if enough.ms is not None and now_s - self._began_s >= enough.ms / 1000:
            return True
        is_quiet = epoch - self._rows_epoch >= _QUIET_EPOCHS
        if not is_quiet or (enough.ms is not None and not self._bounded):
            return False
        return (self._bounded and self._rows > 0) or now_s - self._rows_s >= _QUIET_S
