"""The harness: a piece of a job, driven by hand, one action at a time, without Spark, threads or clocks.

Each push, watermark and advance is an epoch of its own, run by the same hosts as on the engines.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Union

from headwater.connectors.memory import MemorySink, RowsSource
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, no_timestamps, timestamp_array, timestamp_list
from headwater.data.rows import Row, encode_rows
from headwater.data.schema import Schema, SchemaLike
from headwater.errors import ChangelogError
from headwater.functions import OutputTag
from headwater.job.status import StepStatus
from headwater.local.cluster import LocalCluster
from headwater.operators.stateless.functions import rows_of
from headwater.plan.plan import plan_job
from headwater.savepoints.rescale import Place, rescale
from headwater.state.changelog import Head, catch_up
from headwater.state.keys import DEFAULT_KEY_GROUPS
from headwater.streams.environment import Environment
from headwater.streams.stream import Stream
from headwater.task.closing import close_all
from headwater.task.counters import StepCounters
from headwater.task.outcome import Outcome
from headwater.task.outlet import Outlet, Routed
from headwater.task.payload import EpochFacts
from headwater.words import StateBackendName

if TYPE_CHECKING:
    from headwater.testing.sql_harness import SqlHarness

_FORMAT = 2
_SINK = "@harness"
_INPUT = "harness"

Build = Callable[..., Stream]
"""Makes the stream under test out of the stream, or streams, of the harness."""
Inputs = Union[SchemaLike, Mapping[str, SchemaLike]]  # noqa: UP007  an alias that is evaluated
"""The schema of the only input, or the schemas of several by name."""


class Harness:
    """Drives what `build` makes of a stream, or of several by name; times are milliseconds.

    >>> harness = Harness(lambda s: s.map(lambda r: {"k": r.k, "v": -r.v}), schema="k string, v long")
    >>> harness.push({"k": "a", "v": 1}, at=5)
    >>> [(row.v, row.timestamp) for row in harness.take()]
    [(-1, 5)]

    With several inputs, say which one a row or a watermark is for:

    >>> harness = Harness(lambda a, b: a.union(b), schema={"a": "n long", "b": "n long"})
    >>> harness.push({"n": 1}, at=5, to="b")
    >>> harness.watermark(7, of="a")
    >>> harness.take()
    [Row(n=1)]
    """

    def __init__(
        self, build: Build, schema: Inputs, *, parallelism: int = 1, state_backend: StateBackendName = "memory"
    ) -> None:
        given = schema if isinstance(schema, Mapping) else {_INPUT: schema}
        self._schemas = {name: Schema.of(one) for name, one in given.items()}
        env = Environment("harness", engine="local", parallelism=parallelism, state_backend=state_backend)
        inputs = [env.source(RowsSource([[]], one), one, name=name) for name, one in self._schemas.items()]
        stream = build(*inputs)
        stream.sink(MemorySink(), name=_SINK)
        plan = plan_job(env.graph, parallelism, DEFAULT_KEY_GROUPS, state_backend)
        plan.keeps_unread = True
        self._cluster = LocalCluster(plan)
        self._outlets = {source.name: Outlet.behind(plan, source) for source in plan.sources()}
        self._now_ms, self._epoch = 0, 0
        self._given = dict.fromkeys(self._schemas, 0)
        self._watermarks_ms = dict.fromkeys(self._schemas, MIN_TIMESTAMP)
        self._idle: set[str] = set()
        self._rows: list[Any] = []
        self._side: dict[str, list[Any]] = {}
        self._counted = {plan.graph.uid(plan.graph.node(node)): StepStatus() for node in plan.level_of_entry}

    def push(self, row: Any, at: int | None = None, *, to: str | None = None) -> None:
        """Give one row, with its event time, to the input or the named one; it is handled at once."""
        self.push_all([row], [at], to=to)

    def push_all(self, rows: Sequence[Any], at: Sequence[int | None] | None = None, *, to: str | None = None) -> None:
        """Give several rows in one epoch."""
        name = self._named(to)
        table = encode_rows(list(rows), self._schemas[name].arrow, name)
        self._idle.discard(name)
        self._run({name: Batch(table, no_timestamps(len(table)) if at is None else timestamp_array(at))})

    def watermark(self, timestamp: int, *, of: str | None = None) -> None:
        """Move event time, of all inputs or the named one, to `timestamp`; timers that are due fire. It never goes back."""
        for name in self._schemas if of is None else [self._named(of)]:
            self._watermarks_ms[name] = max(self._watermarks_ms[name], timestamp)
            self._idle.discard(name)
        self._run({})

    def idle(self, *, of: str | None = None) -> None:
        """Let nobody wait for an input until it gives a row or a watermark."""
        self._idle.add(self._named(of))
        self._run({})

    def end(self, *, of: str | None = None) -> None:
        """End the input, or the named one: event time goes to its maximum."""
        self.watermark(MAX_TIMESTAMP, of=of)

    def advance_to(self, timestamp: int) -> None:
        """Move processing time to `timestamp`, and fire the timers that are due. It never goes back."""
        self._now_ms = max(self._now_ms, timestamp)
        self._run({})

    def take(self, tag: OutputTag | None = None) -> list[Any]:
        """The rows emitted since the last call, to the main output or to a side output; each has a `timestamp` too."""
        if tag is not None:
            return self._side.pop(tag.name, [])
        rows, self._rows = self._rows, []
        return rows

    def close(self) -> None:
        """Close what steps hold open: event loops, connections, state on disk. `with Harness(...) as harness` does it too."""
        close_all([*self._outlets.values(), self._cluster])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def status(self, step: str | None = None) -> StepStatus:
        """A step, by its uid, or the only one: what it has counted and where it stands, as in `job.status().steps`.

        Steps with state have one, and those that rows move to.

        >>> windows = hw.tumbling("10 ms")
        >>> harness = Harness(lambda s: s.key_by("k").window(windows).agg(n=hw.count()), schema="k string")
        >>> harness.watermark(20)
        >>> harness.push(("a",), at=5)
        >>> harness.status().watermark_ms, harness.status()["late_dropped"]
        (20, 1)
        """
        uid = self._step(step)
        state: Counter[str] = Counter()
        for host in self._cluster.hosts.values():
            state.update(host.sizes().get(uid, {}))
        watermark_ms = min(watermark_ms for watermark_ms, _ in self._event_times(uid))
        return dataclasses.replace(self._counted[uid], watermark_ms=watermark_ms, state=dict(state))

    def is_idle(self, step: str | None = None) -> bool:
        """Whether a step, or the only one, is idle, so that nobody behind it waits: all it reads from is."""
        return all(idle for _, idle in self._event_times(self._step(step)))

    def state_sizes(self) -> dict[str, dict[str, int]]:
        """How many entries each state of each step holds, timers included; steps and states that hold none are left out."""
        sizes: dict[str, dict[str, int]] = {}
        for host in self._cluster.hosts.values():
            for uid, tables in host.sizes().items():
                for name, size in tables.items():
                    if size:
                        step = sizes.setdefault(uid, {})
                        step[name] = step.get(name, 0) + size
        return sizes

    def snapshot(self) -> bytes:
        """All state, timers and times; `Harness.restore` goes on from here."""
        hosts = {f"{level}/{subtask}": host.base() for (level, subtask), host in self._cluster.hosts.items()}
        content = {
            "format": _FORMAT,
            "now_ms": self._now_ms,
            "epoch": self._epoch,
            "given": self._given,
            "watermarks_ms": self._watermarks_ms,
            "idle": sorted(self._idle),
            "hosts": {place: base64.b64encode(record).decode() for place, record in hosts.items()},
        }
        return json.dumps(content, sort_keys=True).encode()

    @classmethod
    def restore(
        cls,
        build: Build,
        schema: Inputs,
        snapshot: bytes,
        *,
        parallelism: int = 1,
        state_backend: StateBackendName = "memory",
    ) -> Harness:
        """A harness of the same program that goes on from a snapshot, also from one of another parallelism or backend."""
        harness = cls(build, schema, parallelism=parallelism, state_backend=state_backend)
        harness._go_on_from(snapshot)
        return harness

    @classmethod
    def sql(
        cls,
        query: str,
        tables: Mapping[str, SchemaLike],
        *,
        time: Mapping[str, str] | None = None,
        keys: Mapping[str, str | Sequence[str]] | None = None,
        snapshot: bytes | None = None,
        parallelism: int = 1,
        state_backend: StateBackendName = "memory",
    ) -> SqlHarness:
        """Drives a query over tables of some schemas.

        `time` names the column of a table that holds its event time; in a table of `keys` a row replaces the one with its
        key, or takes it away. `snapshot` is one of the same query, to go on from.

        >>> harness = Harness.sql("SELECT k, SUM(n) AS total FROM t GROUP BY k", {"t": "k string, n long"})
        >>> harness.push(("a", 1))
        >>> harness.push(("a", 2))
        >>> [(row.row_kind, row.k, row.total) for row in harness.take()]
        [('+I', 'a', 1), ('+U', 'a', 3)]
        """
        from headwater.testing.sql_harness import SqlHarness

        harness = SqlHarness(
            query, tables, time=time or {}, keys=keys or {}, parallelism=parallelism, state_backend=state_backend
        )
        if snapshot is not None:
            harness._go_on_from(snapshot)
        return harness

    def _go_on_from(self, snapshot: bytes) -> None:
        content = json.loads(snapshot)
        cluster = self._cluster
        records = {_place(name): base64.b64decode(record) for name, record in content["hosts"].items()}
        if content["format"] != _FORMAT or {level for level, _ in records} != {level for level, _ in cluster.hosts}:
            raise ChangelogError.bad_blob("the snapshot was taken of another program or version")
        if records.keys() != cluster.hosts.keys():
            records = rescale(records, cluster.plan)
        self._now_ms, self._epoch = content["now_ms"], content["epoch"]
        self._given = content["given"]
        self._watermarks_ms, self._idle = content["watermarks_ms"], set(content["idle"])
        for place, record in records.items():
            store = cluster.stores[place]
            store.write(1, "restored", record)
            store.set_head(Head(1, "restored", 1, len(record), 0))
            catch_up(cluster.hosts[place], store, f"snapshot of {place}")

    def _named(self, name: str | None) -> str:
        if name is None and len(self._schemas) == 1:
            return next(iter(self._schemas))
        if name is None or name not in self._schemas:
            raise ValueError(f"the harness has the inputs {', '.join(self._schemas)}; got {name!r}")
        return name

    def _step(self, step: str | None) -> str:
        if step is None and len(self._counted) == 1:
            return next(iter(self._counted))
        if step is None or step not in self._counted:
            raise ValueError(f"the harness has the steps {', '.join(self._counted) or '(none)'}; got {step!r}")
        return step

    def _event_times(self, uid: str) -> list[tuple[int, bool]]:
        """Of each subtask of a step."""
        known = (host.event_times() for host in self._cluster.hosts.values())
        return [times[uid] for times in known if uid in times]

    def _run(self, batches: Mapping[str, Batch]) -> None:
        payloads: list[Routed] = []
        for name, outlet in self._outlets.items():
            outlet.begin(EpochFacts(self._epoch, self._now_ms), f"{name}/0", self._given[name])
            if name in batches:
                self._given[name] += len(batches[name])
                outlet.emit(None, batches[name])
            payloads += outlet.finish(self._watermarks_ms[name], idle=name in self._idle)
            self._keep(Outcome(sink_batches=outlet.sink_batches, unread=outlet.unread))
        self._epoch += 1
        parts: dict[str, list[StepCounters]] = {}
        for _, outcome in self._cluster.run_levels(payloads):
            self._keep(outcome)
            for uid, counters in outcome.steps.items():
                parts.setdefault(uid, []).append(counters)
        self._counted.update({uid: self._counted[uid].after(parts[uid]) for uid in self._counted if uid in parts})
        self._cluster.commit()

    def _keep(self, outcome: Outcome) -> None:
        for batch in outcome.sink_batches.get(_SINK, ()):
            self._rows.extend(_timed_rows(batch))
        for tag, batches in outcome.unread.items():
            for batch in batches:
                self._side.setdefault(tag, []).extend(_timed_rows(batch))


def _place(name: str) -> Place:
    level, subtask = map(int, name.split("/"))
    return level, subtask


def _timed_rows(batch: Batch) -> Iterator[Any]:
    """Rows that know their timestamp; a field of that name keeps its own value."""
    cls = _timed_class(Schema(batch.table.schema).row)
    for row, timestamp in zip(rows_of(batch.table, cls), timestamp_list(batch.timestamps), strict=True):
        if "timestamp" not in cls._fields:  # type: ignore[attr-defined]
            row.timestamp = timestamp  # type: ignore[attr-defined]
        yield row


def _timed_class(cls: type[Row]) -> type[Row]:
    return type("Row", (cls,), {})
