"""The harness: a piece of a job, driven by hand, one action at a time, without Spark, threads or clocks.

Each push, watermark and advance is an epoch of its own, run by the same hosts as on the engines.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from headwater.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, no_timestamps, timestamp_list
from headwater.connectors.memory import MemorySink, RowsSource
from headwater.errors import ChangelogError
from headwater.functions import OutputTag
from headwater.operators.stateless import rows_of
from headwater.plan.levels import plan_job
from headwater.rows import Row, encode_rows
from headwater.runtime.closing import close_all
from headwater.runtime.host import Outcome
from headwater.runtime.local import LocalCluster
from headwater.runtime.outlet import Outlet
from headwater.runtime.payload import EpochFacts
from headwater.schema import Schema, SchemaLike
from headwater.state.changelog import Head, catch_up
from headwater.state.keys import DEFAULT_KEY_GROUPS
from headwater.streams.environment import Environment
from headwater.streams.stream import Stream

_FORMAT = 1
_SINK = "@harness"


class Harness:
    """Drives what `build` makes of a stream; times are milliseconds.

    >>> harness = Harness(lambda s: s.map(lambda r: {"k": r.k, "v": -r.v}), schema="k string, v long")
    >>> harness.push({"k": "a", "v": 1}, at=5)
    >>> [(row.v, row.timestamp) for row in harness.take()]
    [(-1, 5)]
    """

    def __init__(self, build: Callable[[Stream], Stream], schema: SchemaLike, *, parallelism: int = 1) -> None:
        self._schema = Schema.of(schema)
        env = Environment("harness", engine="local", parallelism=parallelism)
        stream = build(env.source(RowsSource([[]], self._schema), self._schema, name="harness"))
        stream.sink(MemorySink(), name=_SINK)
        plan = plan_job(env.graph, parallelism, DEFAULT_KEY_GROUPS)
        plan.keeps_unread = True
        self._cluster = LocalCluster(plan)
        self._outlet = Outlet.behind(plan, plan.sources()[0])
        self._out_schema = stream.schema
        self._now_ms, self._epoch, self._watermark_ms = 0, 0, MIN_TIMESTAMP
        self._rows: list[Any] = []
        self._side: dict[str, list[Any]] = {}

    def push(self, row: Any, at: int | None = None) -> None:
        """Give one row, with its event time; it is handled at once."""
        table = encode_rows([row], self._schema.arrow, "harness")
        self._run(Batch(table, no_timestamps(1) if at is None else np.array([at], np.int64)))

    def watermark(self, timestamp: int) -> None:
        """Move event time to `timestamp`, and fire the timers that are due. It never goes back."""
        self._watermark_ms = max(self._watermark_ms, timestamp)
        self._run(None)

    def end(self) -> None:
        """End the input: event time goes to its maximum."""
        self.watermark(MAX_TIMESTAMP)

    def advance_to(self, timestamp: int) -> None:
        """Move processing time to `timestamp`, and fire the timers that are due. It never goes back."""
        self._now_ms = max(self._now_ms, timestamp)
        self._run(None)

    def take(self, tag: OutputTag | None = None) -> list[Any]:
        """The rows emitted since the last call, to the main output or to a side output; each has a `timestamp` too."""
        if tag is not None:
            return self._side.pop(tag.name, [])
        rows, self._rows = self._rows, []
        return rows

    def close(self) -> None:
        """Close what steps hold open: event loops, connections. `with Harness(...) as harness` does it too."""
        close_all([self._outlet, self._cluster])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def snapshot(self) -> bytes:
        """All state, timers and times; `Harness.restore` goes on from here."""
        hosts = {f"{level}/{subtask}": host.base() for (level, subtask), host in self._cluster.hosts.items()}
        content = {
            "format": _FORMAT,
            "now_ms": self._now_ms,
            "epoch": self._epoch,
            "watermark_ms": self._watermark_ms,
            "hosts": {place: base64.b64encode(record).decode() for place, record in hosts.items()},
        }
        return json.dumps(content, sort_keys=True).encode()

    @classmethod
    def restore(
        cls, build: Callable[[Stream], Stream], schema: SchemaLike, snapshot: bytes, *, parallelism: int = 1
    ) -> Harness:
        """A harness of the same program that goes on from a snapshot."""
        content = json.loads(snapshot)
        harness = cls(build, schema, parallelism=parallelism)
        if content["format"] != _FORMAT or len(content["hosts"]) != len(harness._cluster.hosts):
            raise ChangelogError.bad_blob("the snapshot was taken of another program, parallelism or version")
        harness._now_ms, harness._epoch = content["now_ms"], content["epoch"]
        harness._watermark_ms = content["watermark_ms"]
        for place, encoded in content["hosts"].items():
            level, subtask = map(int, place.split("/"))
            record = base64.b64decode(encoded)
            store = harness._cluster.stores[level, subtask]
            store.write(1, "restored", record)
            store.set_head(Head(1, "restored", 1, len(record), 0))
            catch_up(harness._cluster.hosts[level, subtask], store, f"snapshot of {place}")
        return harness

    def _run(self, batch: Batch | None) -> None:
        outlet = self._outlet
        outlet.begin(EpochFacts(self._epoch, self._now_ms), "harness/0", 0)
        self._epoch += 1
        if batch is not None:
            outlet.emit(None, batch)
        payloads = outlet.finish(self._watermark_ms)
        self._keep(Outcome(sink_batches=outlet.sink_batches, unread=outlet.unread))
        for _, outcome in self._cluster.run_levels(payloads):
            self._keep(outcome)

    def _keep(self, outcome: Outcome) -> None:
        for batch in outcome.sink_batches.get(_SINK, ()):
            self._rows.extend(_timed_rows(batch))
        for tag, batches in outcome.unread.items():
            for batch in batches:
                self._side.setdefault(tag, []).extend(_timed_rows(batch))


def _timed_rows(batch: Batch) -> Iterator[Any]:
    """Rows that know their timestamp; a field of that name keeps its own value."""
    cls = _timed_class(Schema(batch.table.schema).row)
    for row, timestamp in zip(rows_of(batch.table, cls), timestamp_list(batch.timestamps), strict=True):
        if "timestamp" not in cls._fields:  # type: ignore[attr-defined]
            row.timestamp = timestamp  # type: ignore[attr-defined]
        yield row


def _timed_class(cls: type[Row]) -> type[Row]:
    return type("Row", (cls,), {})
