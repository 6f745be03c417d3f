"""The environment: where a job is put together and from where it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headwater.budgets import Budget, budgets_of
from headwater.connectors.contract import Source
from headwater.connectors.dataframes import DataFrameSource
from headwater.connectors.memory import RowsSource
from headwater.data.schema import SchemaLike
from headwater.durations import Duration, duration_ms
from headwater.epoch.clock import Clock, wall_clock
from headwater.epoch.steps import OnStep, ignore_steps
from headwater.errors import GraphError, JobError
from headwater.graph.checks import checked_ttl
from headwater.graph.describe import describe
from headwater.graph.graph import Graph
from headwater.graph.guarantees import PathGuarantee, explain_guarantees, guarantees
from headwater.graph.nodes import SourceNode
from headwater.job.checkpoints.listing import Checkpoint
from headwater.job.engine import Engine, Job, Settings
from headwater.job.progress.follow import shown
from headwater.job.signals import Foreground
from headwater.job.watching import JobWatcher
from headwater.local.engine import LocalEngine
from headwater.plan.explain import explain
from headwater.plan.plan import JobPlan, plan_job
from headwater.restart import MachineTime, RestartStrategy, RestartTime, none
from headwater.savepoints.files import Savepoint
from headwater.savepoints.fitting import Program, fit, require
from headwater.savepoints.origin import Origin
from headwater.savepoints.renaming import Renaming
from headwater.state.keys import DEFAULT_KEY_GROUPS
from headwater.streams.dead_letters import check_dead_letters
from headwater.streams.event_time import warn_of_event_time
from headwater.streams.given_rows import rows_of
from headwater.streams.growth import warn_of_growth
from headwater.streams.guarantees import after_failure, warn_of_guarantees
from headwater.streams.logs import check_log, show_log
from headwater.streams.overrides import check_may_start, overrides
from headwater.streams.previews import Previews
from headwater.streams.runs import check_available_now, check_gives_results
from headwater.streams.sampling import Samples
from headwater.streams.settings import (
    check_engine,
    check_explained,
    check_modes,
    check_name,
    check_sizes,
    check_watchers,
    unaligned_ms,
)
from headwater.streams.sql_door import SqlDoor
from headwater.streams.start_checks import check_event_time, check_outputs
from headwater.streams.state_backends import check_spills, check_state
from headwater.streams.stored_state import StoredState
from headwater.streams.stream import Step
from headwater.watermarks import Watermarks
from headwater.words import Checkpointing, EngineName, Explained, LogFormat, LogLevel, StateBackendName


class Environment(SqlDoor, Previews, Samples, StoredState):
    """A job under construction: sources are added here, steps on the streams they give, and `run` runs it all."""

    def __init__(  # noqa: PLR0913  the settings of a job, by name
        self,
        name: str,
        *,
        job_dir: str | os.PathLike[str] | None = None,
        parallelism: int = 2,
        checkpoint_interval: Duration = "1 s",
        checkpoints_retained: int = 100,
        engine: EngineName = "spark",
        spark: Any = None,
        spark_config: dict[str, str] | None = None,
        key_groups: int = DEFAULT_KEY_GROUPS,
        max_rows_per_epoch: int = 1_000_000,
        restart: RestartStrategy | None = None,
        checkpointing: Checkpointing = "exactly_once",
        unaligned: bool | Duration = False,
        state_backend: StateBackendName = "memory",
        state_memory: str = "256 MiB",
        state_ttl: Duration | None = None,
        state_budget: Mapping[str, str | Budget] | None = None,
        log_level: LogLevel | None = None,
        log_format: LogFormat = "text",
        metrics: JobWatcher | Sequence[JobWatcher] = (),
    ) -> None:
        """Without `job_dir` the job runs in a temporary folder and nothing of it survives the process.

        `checkpoint_interval` is the time between epochs of a job that waits for input; `max_rows_per_epoch` bounds what
        each source gives to one epoch, except files, which have `max_files_per_epoch`. So many of the newest checkpoints
        are retained as `checkpoints_retained` says, and `hw.checkpoints` lists them. `restart` says what to do when the
        running job fails: one of `hw.restart`, of which `none()` is the default. `state_backend` says where the working
        state of keyed steps lives: in memory, or with `"disk"` on the workers' local disks, of which each worker
        then holds as much in memory as `state_memory` says, for all its steps together. Both may differ from one run to
        the next. `state_ttl` is for how long, in processing time, state by key lasts that says nothing of that itself.
        `state_budget` is how much state steps may keep, by their uids: `{"totals": "2 GB"}`, after which the job fails
        before it commits more, or `hw.budget("2 GB", on_full="warn")`, which says what else is done.

        With `checkpointing="at_least_once"` sinks get the rows of an epoch before it is committed, and after a failure
        perhaps again. With `unaligned` a slow step does not hold epochs up: in each it works on rows for about the given
        time, or the checkpoint interval if it is True, and what is left waits for the next one.

        What the library logs, as `headwater.*`, is shown on standard error from `log_level` on: "warning" unless said
        otherwise. An application that sets up `logging` itself decides what is shown; the level is then that of the
        logger `headwater`, if it is given. With `log_format="json"` each line is an object, with the job, epoch and step that
        it is about.

        `metrics` are the ways out for what the running job measures: `hw.metrics.prometheus()`, `hw.metrics.opentelemetry()`.
        """
        over = overrides()
        parallelism, engine = over.parallelism or parallelism, over.engine or engine
        job_dir = over.job_dir or job_dir
        check_log(log_level, log_format)
        self._watchers = (*check_watchers(metrics), *over.watchers)
        check_name(name)
        check_engine(engine)
        check_sizes(parallelism, key_groups, max_rows_per_epoch, checkpoints_retained)
        check_modes(restart, checkpointing)
        self._state_memory_bytes = check_state(state_backend, state_memory)
        self._budgets = check_spills(budgets_of(state_budget))
        self.name = name
        self.graph = Graph(name, checked_ttl(state_ttl, "environment"))
        super().__init__()
        self.job_dir: Path | None = None if job_dir is None else Path(job_dir)
        self._parallelism, self._key_groups = parallelism, key_groups
        self._interval_ms = duration_ms(checkpoint_interval, what="checkpoint_interval")
        self._unaligned_ms = unaligned_ms(self._interval_ms, unaligned=unaligned)
        self._engine_name, self._spark = engine, spark
        self._spark_config = {**(spark_config or {}), **over.spark_config}
        self._max_rows, self._retained = max_rows_per_epoch, checkpoints_retained
        self._state_backend = state_backend
        self._log_level, self._log_format = log_level, log_format
        self._restart = none() if restart is None else restart
        self._publishes_early = checkpointing == "at_least_once"

    def __repr__(self) -> str:
        return f"<Environment {self.name} on {self._engine_name}: {len(list(self.graph))} steps>"

    def source(
        self,
        source: Source,
        schema: SchemaLike,
        watermarks: Watermarks | None = None,
        *,
        name: str = "source",
    ) -> Step:
        """Read a source."""
        node = SourceNode.of(source=source, schema=schema, watermarks=watermarks, name=name)
        return Step(self, self.graph.add(node))

    def from_rows(
        self,
        rows: Any,
        schema: SchemaLike | None = None,
        watermarks: Watermarks | None = None,
        *,
        name: str = "rows",
    ) -> Step:
        """A bounded stream of rows: dicts or tuples of a schema; or a table of pandas, Polars or Arrow, which has its own.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([("ann", 3), ("bob", None)], "user string, n int").collect()
        [Row(user='ann', n=3), Row(user='bob', n=None)]
        >>> env.from_rows(pa.table({"user": ["ann"], "n": [3]}), name="table").collect()
        [Row(user='ann', n=3)]

        Of a table with a schema, these columns are read, as these types.
        """
        given, parsed = rows_of(rows, schema, name)
        return self.source(RowsSource([given], parsed), parsed, watermarks, name=name)

    def from_dataframe(
        self, frame: Any, watermarks: Watermarks | None = None, *, splits: int = 1, name: str = "dataframe"
    ) -> Step:
        """Read a DataFrame of Spark: a streaming one micro-batch by micro-batch, another one as bounded input.

        A query beside the job puts each micro-batch down in the job folder before the job reads it, so the job is
        exactly-once whatever the DataFrame is made of. `splits` tasks of an epoch share each micro-batch.
        """
        if self._engine_name != "spark":
            raise JobError.not_supported("a DataFrame is Spark's", "run the job with engine='spark'")
        if not hasattr(frame, "isStreaming") or not hasattr(frame, "schema"):
            raise GraphError.bad_argument(name, "needs a DataFrame of Spark", frame, "give spark.readStream...load()")
        source = DataFrameSource(frame, splits)
        return self.source(source, source.schema, watermarks, name=name)

    def describe(self) -> str:
        """The job graph as text."""
        self.graph.validate()
        return describe(self.graph)

    def explain(self, of: Explained = "plan") -> str:
        """The levels the graph runs in, as text; or of "state" what steps keep, per what, until when and how to bound it."""
        return str(self.explain_state()) if check_explained(of) == "state" else explain(self.plan())

    def guarantees(self) -> list[PathGuarantee]:
        """For each source and each sink that its rows reach: how often they take effect there, and why."""
        self.graph.validate()
        outlives_process = self._outlives_process(self.job_dir)
        return guarantees(self.graph, outlives_process=outlives_process, publishes_early=self._publishes_early)

    def explain_guarantees(self) -> str:
        """The guarantees as text, and what the job goes on from after a failure.

        >>> env = Environment("doc", engine="local")
        >>> env.from_rows([(1,)], "n int").print()  # doctest: +ELLIPSIS
        <...>
        >>> print(env.explain_guarantees())
        job doc
        after a failure it starts from the beginning: it has neither a restart strategy nor, on Spark, a job_dir
        rows -> print: at-least-once
          source rows (1 rows in memory): its rows can be read again
          sink print (console): an epoch that is being published when the job fails is published again
        """
        after = after_failure(outlives_process=self._outlives_process(self.job_dir), restarts=self._restart != none())
        return explain_guarantees(self.name, after, self.guarantees())

    def _outlives_process(self, job_dir: Path | None) -> bool:
        """Whether a new process goes on where this one was."""
        return self._engine_name == "spark" and job_dir is not None

    def start(
        self,
        *,
        from_: str | os.PathLike[str] | Checkpoint | None = None,
        allow_dropped_state: bool = False,
        renamed: Mapping[str, str] | None = None,
        bounded: bool | None = None,
        available_now: bool = False,
        on_step: OnStep = ignore_steps,
        clock: Clock = wall_clock,
        restart_time: RestartTime | None = None,
    ) -> Job:
        """Start the job and return at once. `bounded` reads what is there and ends; the default is whether all input ends.

        With `available_now` the run reads what is there when it starts and stops; event time stays where the rows put it,
        and the next run with the same `job_dir` goes on.

        `from_` is a savepoint, or one of `hw.checkpoints(job_dir)`, to go on from in a new `job_dir`. State in it that the
        program has no place for is an error unless `allow_dropped_state`; `renamed` maps old names to new ones:
        `{"step": "new", "step/state": "new", "step/state.value.field": "new"}`. `hw.savepoint.check` tells beforehand what
        becomes of each state.

        `on_step` is told of every step of every epoch. For tests, `clock` gives processing time by epoch, and
        `restart_time` is the time that the restart strategy goes by.
        """
        checkpoint = from_ if isinstance(from_, Checkpoint) else None
        if checkpoint is not None and self._engine_name != "spark":
            raise JobError.not_supported("checkpoints are Spark's", "start from a savepoint, or with engine='spark'")
        savepoint = None if isinstance(from_, Checkpoint) else from_
        origin = self._origin(savepoint, renamed, allow_dropped_state=allow_dropped_state)
        self._started = self._start(
            self.graph,
            self.job_dir,
            bounded=bounded,
            available_now=available_now,
            origin=origin,
            checkpoint=checkpoint,
            on_step=on_step,
            clock=clock,
            restart_time=restart_time,
            watchers=self._watchers,
        )
        return self._started

    def run(
        self,
        *,
        from_: str | os.PathLike[str] | Checkpoint | None = None,
        allow_dropped_state: bool = False,
        renamed: Mapping[str, str] | None = None,
        bounded: bool | None = None,
        available_now: bool = False,
        progress: bool | None = None,
        on_step: OnStep = ignore_steps,
        clock: Clock = wall_clock,
        restart_time: RestartTime | None = None,
    ) -> Job:
        """Run the job: bounded input to its end, other input until it is stopped.

        With `available_now` it stops by itself when it has read what was there at its start. Ctrl-C and SIGTERM stop it as
        `job.stop()` does, and the program ends with exit code 130 or 143; a second one ends the program at once. In an
        interpreter or a notebook Ctrl-C stops the job, which is returned.

        In a terminal a line on stderr says what the job does; `progress=False` leaves it out, and `progress=True` writes
        such lines now and then wherever stderr leads.
        """
        sources = {self.graph.uid(node): node for node in self.graph if isinstance(node, SourceNode)}
        with Foreground(self.name, goes_on=self._outlives_process(self.job_dir)) as foreground:
            job = self.start(
                from_=from_,
                allow_dropped_state=allow_dropped_state,
                renamed=renamed,
                bounded=bounded,
                available_now=available_now,
                on_step=on_step,
                clock=clock,
                restart_time=restart_time,
            )
            foreground.watch(job)
            with shown(job, sources, wanted=progress):
                job.wait()
        return job

    def plan(self) -> JobPlan:
        """The job as the engines run it."""
        return self._plan(self.graph, is_whole=True)

    def _plan(self, graph: Graph, *, is_whole: bool = False) -> JobPlan:
        """Plan a graph; budgets are for steps of the whole job, and a part of it may lack them."""
        return plan_job(
            graph,
            self._parallelism,
            self._key_groups,
            self._state_backend,
            state_memory_bytes=self._state_memory_bytes,
            publishes_early=self._publishes_early,
            budgets=self._budgets if is_whole else {},
        )

    def _origin(
        self, path: str | os.PathLike[str] | None, renamed: Mapping[str, str] | None, *, allow_dropped_state: bool
    ) -> Origin | None:
        """The savepoint to go on from, after a check that the program can."""
        if path is None:
            return None
        savepoint, renaming = Savepoint.open(Path(path)), Renaming.of(renamed)
        plan = self.plan()
        require(savepoint, fit(savepoint, Program(plan), renaming), allow_dropped_state=allow_dropped_state)
        return Origin.of(savepoint, renaming)

    def _start(
        self,
        graph: Graph,
        job_dir: Path | None,
        *,
        bounded: bool | None,
        available_now: bool = False,
        origin: Origin | None = None,
        checkpoint: Checkpoint | None = None,
        on_step: OnStep = ignore_steps,
        clock: Clock = wall_clock,
        restart_time: RestartTime | None = None,
        watchers: tuple[JobWatcher, ...] = (),
    ) -> Job:
        check_may_start()
        show_log(self._log_level, self._log_format)
        is_whole, graph = graph is self.graph, graph.with_own_sources()
        plan = self._plan(graph, is_whole=is_whole)
        check_dead_letters(graph)
        check_event_time(graph)
        check_outputs(graph)
        if available_now:
            check_available_now(plan, bounded=bounded, on_spark=self._engine_name == "spark", job_dir=job_dir)
            bounded = False
        elif bounded is None:
            bounded = all(node.source.bounded for node in plan.sources())
        if bounded:
            check_gives_results(graph)
        else:
            warn_of_growth(graph)
            warn_of_event_time(graph)
        outlives_process = self._outlives_process(job_dir)
        if outlives_process or self._restart != none():
            warn_of_guarantees(graph, outlives_process=outlives_process, publishes_early=self._publishes_early)
        settings = Settings(
            job_dir=job_dir,
            checkpoint_interval_ms=self._interval_ms,
            checkpoints_retained=self._retained,
            max_rows_per_epoch=self._max_rows,
            bounded=bounded,
            available_now=available_now,
            unaligned_ms=self._unaligned_ms,
            on_step=on_step,
            watchers=watchers,
            restart=self._restart,
            clock=clock,
            restart_time=restart_time or MachineTime(),
            origin=origin,
            checkpoint=checkpoint,
            spark=self._spark,
            spark_config=self._spark_config,
        )
        return self._engine().start(plan, settings)

    def _engine(self) -> Engine:
        if self._engine_name == "local":
            return LocalEngine()
        from headwater.spark.engine import SparkEngine

        return SparkEngine()
