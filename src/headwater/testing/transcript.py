"""Transcripts: what goes into a program and what must come out, as plain data, run by hand or on any engine.

A transcript is a list of actions, each a dictionary of one entry (or the bare word `crash` or `end`):

    rows: [{k: a, n: 1, at: 10}]     rows with their event time, if they have one
    rows: [{k: a, in: left, at: 10}] the same where there are several inputs
    watermark: 20                    event time moves, of every input
    watermark: {left: 20}            event time moves, of the named inputs
    clock: 50                        processing time moves
    crash                            state is lost and comes back from what was stored
    end                              the input ends; every transcript has this
    expect: [{k: a, n: 1, at: 20}]   what the main output has given since the last expect
    expect: {main: […], late: […]}   the same for several outputs; one that is not named must have given nothing

The transcript has the `schema` of its input, or the schemas of several by name; its program gets a stream for each.
The same transcript must hold however its rows are sliced into epochs, and with a crash between any two actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from headwater.connectors.memory import MemorySink
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, timestamp_array
from headwater.data.rows import encode_rows
from headwater.data.schema import Schema
from headwater.functions import Context, ProcessFunction
from headwater.state.changelog import catch_up
from headwater.streams.environment import Environment
from headwater.streams.stream import Stream
from headwater.task.host import LevelHost
from headwater.task.outcome import Outcome
from headwater.testing.harness import Harness, _timed_rows
from headwater.testing.script_source import Script, ScriptSource
from headwater.watermarks import Watermarks
from headwater.words import EngineName, StateBackendName

Program = Callable[..., Mapping[str, Stream]]
"""Builds the outputs by name, 'main' among them, over the streams of the transcript's inputs."""
Given = tuple[str, int | None, Any]
"""An input, and the event time and the values of a row for it."""
Shown = tuple[Any, ...]
"""An emitted row as it is compared: its values, then its event time or None."""

MAIN = "main"
SLICINGS: dict[str, int | None] = {"all at once": None, "one row": 1, "pairs": 2}
CRASHES = ("never", "snapshot", "rebuild")
"""Between any two actions: nothing; a snapshot restored elsewhere; working copies lost and rebuilt from deltas."""
RESCALE = "rescale"
"""Between any two actions: a snapshot restored on another number of subtasks. For programs that promise the same on any."""
_MOST_SUBTASKS = 4

_OUTPUT = "output-"
_ONLY, _IN = "only", "in"
_AT, _MARK, _IS_ROW = "hw_at", "hw_mark", "hw_is_row"


@dataclass(frozen=True)
class Transcript:
    """One transcript. `ordered` is whether the order of an output's rows between two expects is promised."""

    program: str
    schemas: Mapping[str, Schema]
    actions: tuple[tuple[str, Any], ...]
    ordered: bool = True
    parallelism: int = 1

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Transcript:
        """A transcript out of what its file holds."""
        schema = content["schema"]
        schemas = {
            name: Schema.of(one) for name, one in (schema if isinstance(schema, dict) else {_ONLY: schema}).items()
        }
        actions = tuple(_action(given, list(schemas)) for given in content["actions"])
        kinds = [kind for kind, _ in actions]
        if "end" not in kinds or kinds[-1] != "expect" or set(kinds[kinds.index("end") :]) != {"end", "expect"}:
            raise ValueError("a transcript ends with 'end' and then 'expect': on an engine, bounded input always ends")
        return cls(
            content["program"],
            schemas,
            actions,
            content.get("ordered", True),
            content.get("parallelism", 1),
        )


@dataclass
class Epoch:
    """What one epoch brings: rows with event times, and where event time and the clock stand after them."""

    rows: list[Given] = field(default_factory=list)
    watermarks_ms: Mapping[str, int] = field(default_factory=dict)
    now_ms: int = 0

    def rows_of(self, name: str) -> list[tuple[int | None, Any]]:
        """The rows for one input."""
        return [(at, row) for given, at, row in self.rows if given == name]


def run_on_harness(
    transcript: Transcript,
    program: Program,
    *,
    slicing: str = "one row",
    crash: str = "never",
    state_backend: StateBackendName = "memory",
) -> None:
    """Play a transcript by hand and compare at every expect."""
    with _Player(transcript, program, state_backend) as player:
        _play(player, transcript, slicing, crash)


def _play(player: _Player, transcript: Transcript, slicing: str, crash: str) -> None:
    pending: list[Given] = []
    for number, (kind, content) in enumerate(transcript.actions):
        if kind == "rows":
            pending += content
            continue
        for epoch in _slices(pending, player.epoch, SLICINGS[slicing], joins_next=kind == "watermark"):
            player.play(epoch)
        joined = pending if kind == "watermark" and SLICINGS[slicing] is None else []
        if kind == "expect":
            ordered = transcript.ordered and crash != RESCALE
            _compare(content, player.take(), transcript, f"action {number + 1}", ordered=ordered)
        elif kind == "crash":
            player.crash("snapshot")
        else:
            player.play(_moved(player.epoch, kind, content, joined))
        pending = []
        player.crash(crash)


def run_on_engine(
    transcript: Transcript,
    program: Program,
    *,
    engine: EngineName,
    slicing: str = "all at once",
    parallelism: int | None = None,
    spark: Any = None,
    state_backend: StateBackendName = "memory",
) -> None:
    """Play a transcript as one bounded run of an engine, an epoch a slice, and compare all that came out."""
    epochs = _epochs(transcript, SLICINGS[slicing])
    parallelism = parallelism or transcript.parallelism
    env = Environment("transcript", engine=engine, parallelism=parallelism, spark=spark, state_backend=state_backend)
    sinks = _add(env, transcript, program, epochs)
    times = [epoch.now_ms for epoch in epochs]
    env.run(bounded=True, clock=lambda epoch: 0 if epoch < 0 else times[min(epoch, len(times) - 1)])
    _compare_run(transcript, sinks, f"the run on {engine}", ordered=parallelism == 1)


def _add(
    env: Environment, transcript: Transcript, program: Program, epochs: Sequence[Epoch], prefix: str = ""
) -> dict[str, MemorySink]:
    """Add a program that is played a transcript to a graph. The uids of its steps get the prefix. Returns its outputs."""
    before = len(list(env.graph))
    sinks = {name: MemorySink() for name in [MAIN, *_expected(transcript)]}
    scripts = [_script(env, name, schema, epochs) for name, schema in transcript.schemas.items()]
    for name, output in program(*scripts).items():
        stream = told(output)
        stamped = Schema(stream.schema.arrow.append(pa.field(_AT, pa.int64())))
        stream.process(_Stamp(), stamped, name=f"stamp-{name}").sink(
            sinks.setdefault(name, MemorySink()), name=f"{_OUTPUT}{name}"
        )
    if prefix:
        for node_id, uid in [(node.id, env.graph.uid(node)) for node in list(env.graph)[before:]]:
            env.graph.set_uid(node_id, prefix + uid)
    return sinks


def _compare_run(transcript: Transcript, sinks: Mapping[str, MemorySink], where: str, *, ordered: bool) -> None:
    found = {name: [tuple(row) for row in sink.rows] for name, sink in sinks.items()}
    _compare(_expected(transcript), found, transcript, where, ordered=ordered and transcript.ordered)


def told(stream: Stream) -> Stream:
    """The rows of a stream; of a changelog with a column that says what they do."""
    return stream if stream.changelog.is_append_only else stream.with_row_kind()


class _Player(Harness):
    """A harness with several outputs that takes epochs and can lose its working copies."""

    def __init__(self, transcript: Transcript, program: Program, state_backend: StateBackendName) -> None:
        self._transcript, self._program, self._state_backend = transcript, program, state_backend
        self._found: dict[str, list[Shown]] = {}
        super().__init__(
            self._build, transcript.schemas, parallelism=transcript.parallelism, state_backend=state_backend
        )

    def _build(self, *streams: Stream) -> Stream:
        outputs = self._program(*streams)
        for name, output in outputs.items():
            if name != MAIN:
                output.sink(MemorySink(), name=f"{_OUTPUT}{name}")
        return outputs[MAIN]

    @property
    def epoch(self) -> Epoch:
        """An epoch that brings nothing."""
        return Epoch([], self._watermarks_ms, self._now_ms)

    def play(self, epoch: Epoch) -> None:
        self._watermarks_ms, self._now_ms = dict(epoch.watermarks_ms), epoch.now_ms
        given = {name: epoch.rows_of(name) for name in self._schemas}
        self._run({name: _batch(rows, self._schemas[name]) for name, rows in given.items() if rows})

    def take(self, tag: Any = None) -> Any:
        found, self._found = self._found, {}
        return found

    def crash(self, how: str) -> None:
        """Lose every working copy and get it back."""
        if how == "never":
            return
        cluster = self._cluster
        snapshot = b"" if how == "rebuild" else self.snapshot()
        self.close()
        if snapshot:
            parallelism = cluster.plan.parallelism
            if how == RESCALE:
                parallelism = parallelism % _MOST_SUBTASKS + 1
            other = Harness.restore(
                self._build,
                self._transcript.schemas,
                snapshot,
                parallelism=parallelism,
                state_backend=self._state_backend,
            )
            self._cluster, self._outlets = other._cluster, other._outlets
        else:
            cluster.hosts = {place: LevelHost(cluster.plan, *place) for place in cluster.hosts}
            for place, host in cluster.hosts.items():
                catch_up(host, cluster.stores[place], f"rebuilt {place}")

    def _keep(self, outcome: Outcome) -> None:
        for uid, batches in outcome.sink_batches.items():
            name = MAIN if uid == "@harness" else uid.removeprefix(_OUTPUT)
            for batch in batches:
                times = [None if t == MIN_TIMESTAMP else t for t in batch.timestamps.tolist()]
                rows = [tuple(row) for row in _timed_rows(batch)]
                self._found.setdefault(name, []).extend((*r, t) for r, t in zip(rows, times, strict=True))


class _Stamp(ProcessFunction):
    """Shows the event time that rows carry."""

    def process(self, event: Any, ctx: Context) -> Iterator[Any]:
        yield (*event, ctx.timestamp)


def _script(env: Environment, name: str, schema: Schema, epochs: Sequence[Epoch]) -> Stream:
    """The stream of a transcript's rows for one input, on an engine.

    Each epoch ends with a row that is none: it carries the watermark, and is taken out behind the source.
    """
    plain = pa.schema([pa.field(f.name, f.type) for f in schema.arrow])
    extra = [pa.field(_AT, pa.int64()), pa.field(_MARK, pa.int64()), pa.field(_IS_ROW, pa.bool_())]
    rows: list[tuple[Any, ...]] = []
    bounds = []
    for epoch in epochs:
        watermark_ms = epoch.watermarks_ms.get(name, MIN_TIMESTAMP)
        mark = watermark_ms + (watermark_ms < MAX_TIMESTAMP)  # the strategy says one less
        for at, row in epoch.rows_of(name):
            rows.append((*(row[column] for column in plain.names), MIN_TIMESTAMP if at is None else at, mark, True))
        rows.append((*[None] * len(plain), MIN_TIMESTAMP, mark, False))
        bounds.append(len(rows))
    whole = pa.schema([*plain, *extra])
    source = ScriptSource(Script(encode_rows(rows, whole, "transcript"), bounds))
    marked = env.source(source, Schema(whole), Watermarks.monotonous(_MARK), name=f"script-{name}")
    timed = marked.map_batches(_rows_only, Schema(pa.schema([*plain, extra[0]])), timestamp=_AT)
    return timed.map_batches(partial(_columns, names=plain.names), Schema(plain))


def _rows_only(table: pa.Table) -> pa.Table:
    return table.filter(table[_IS_ROW]).drop_columns([_MARK, _IS_ROW])


def _columns(table: pa.Table, names: list[str]) -> pa.Table:
    return table.select(names)


def _epochs(transcript: Transcript, size: int | None) -> list[Epoch]:
    """The epochs of a whole transcript; expects and crashes do not end one."""
    epochs: list[Epoch] = []
    stands = Epoch([], dict.fromkeys(transcript.schemas, MIN_TIMESTAMP))
    pending: list[Given] = []
    for kind, content in transcript.actions:
        if kind == "rows":
            pending += content
        elif kind in ("watermark", "clock", "end"):
            epochs += _slices(pending, stands, size, joins_next=kind == "watermark")
            joined = pending if kind == "watermark" and size is None else []
            epochs.append(_moved(stands, kind, content, joined))
            stands = Epoch([], epochs[-1].watermarks_ms, epochs[-1].now_ms)
            pending = []
    return epochs


def _slices(rows: list[Given], stands: Epoch, size: int | None, *, joins_next: bool) -> Iterator[Epoch]:
    """Rows as epochs in which time stands still; all at once, they join the epoch of the watermark that follows."""
    if size is None and joins_next:
        return
    size = size or max(1, len(rows))
    for at in range(0, len(rows), size):
        yield Epoch(rows[at : at + size], stands.watermarks_ms, stands.now_ms)


def _moved(stands: Epoch, kind: str, content: Any, rows: list[Given]) -> Epoch:
    if kind == "clock":
        return Epoch(rows, stands.watermarks_ms, max(stands.now_ms, content))
    to = content if isinstance(content, dict) else dict.fromkeys(stands.watermarks_ms, content)
    moved = {
        name: max(at, MAX_TIMESTAMP if kind == "end" else to.get(name, at)) for name, at in stands.watermarks_ms.items()
    }
    return Epoch(rows, moved, stands.now_ms)


def _action(given: Any, inputs: Sequence[str]) -> tuple[str, Any]:
    if given in ("crash", "end"):
        return given, None
    ((kind, content),) = given.items()
    if kind == "rows":
        several = len(inputs) > 1
        hidden = {"at", _IN} if several else {"at"}
        values = [{k: v for k, v in row.items() if k not in hidden} for row in content]
        names = [row[_IN] if several else inputs[0] for row in content]
        return kind, [(name, row.get("at"), value) for name, row, value in zip(names, content, values, strict=True)]
    if kind == "expect":
        by_output = content if isinstance(content, dict) else {MAIN: content or []}
        return kind, {name: [_shown(row) for row in rows or []] for name, rows in by_output.items()}
    if kind not in ("watermark", "clock"):
        raise ValueError(f"a transcript has no action {kind!r}; it has rows, watermark, clock, crash, end and expect")
    return kind, content


def _shown(row: Mapping[str, Any]) -> Shown:
    return (*(value for name, value in row.items() if name != "at"), row.get("at"))


def _expected(transcript: Transcript) -> dict[str, list[Shown]]:
    found: dict[str, list[Shown]] = {}
    for kind, content in transcript.actions:
        if kind == "expect":
            for name, rows in content.items():
                found.setdefault(name, []).extend(rows)
    return found


def _batch(rows: list[tuple[int | None, Any]], schema: Schema) -> Batch:
    table = encode_rows([row for _, row in rows], schema.arrow, "transcript")
    return Batch(table, np.asarray(timestamp_array([at for at, _ in rows])))


def _compare(
    expected: Mapping[str, list[Shown]],
    found: Mapping[str, list[Shown]],
    transcript: Transcript,
    where: str,
    *,
    ordered: bool | None = None,
) -> None:
    ordered = transcript.ordered if ordered is None else ordered
    for name in sorted({*expected, *found}):
        wanted, got = list(expected.get(name, ())), list(found.get(name, ()))
        if not ordered:
            wanted, got = sorted(wanted, key=repr), sorted(got, key=repr)
        if wanted != got:
            raise AssertionError(f"{where}: output {name!r} must be\n  {wanted}\nand is\n  {got}")
