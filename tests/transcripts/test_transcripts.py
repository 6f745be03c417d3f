"""Every transcript of this folder, on the harness and on the local engine; the programs they name are below and beside."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import yaml

import headwater as hw
from headwater.state.disk import times as disk_times
from headwater.state.disk.bound import Bound
from headwater.state.disk.timers import DiskTimers
from headwater.streams.stream import Stream
from headwater.testing.transcript import CRASHES, RESCALE, SLICINGS, Program, Transcript, run_on_engine, run_on_harness

FILES = sorted(Path(__file__).parent.rglob("*.yaml"))
MODULES = [
    import_module(f"tests.transcripts.{file.stem}") for file in sorted(Path(__file__).parent.glob("*_programs.py"))
]
CONTENTS = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}
BY_SUBTASK = {"partitioning", "operator_state"}
"""The transcripts of programs that show how many subtasks there are."""
BY_KEY = [file.stem for file in FILES if file.parent == Path(__file__).parent]
"""The transcripts beside those of windows and joins."""
BY_COLUMNS = ["aggregates", "compositions", "evicting", "lateness", "panes", "retracting_sessions", "sliding_lateness"]
"""Some of windows, of each way to compute them; joins are all."""
BY_COLUMNS += [file.stem for file in FILES if "joins" in file.parent.name]
OUT = "k string, what string"


class Timers(hw.KeyedProcessFunction):
    """Does with timers what the row says, in either domain; `then` is what a timer does when it fires."""

    follow_up = hw.MapState("bigint", "bigint")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        act = {
            "event": ctx.timers.event_time,
            "processing": ctx.timers.processing_time,
            "delete_event": ctx.timers.delete_event_time,
            "delete_processing": ctx.timers.delete_processing_time,
        }
        if event.do is not None:
            act[event.do](event.t)
        if event.then is not None:
            self.follow_up.put(event.t, event.then)
        yield ctx.key, f"{event.do} {event.t}"

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        then = self.follow_up.get(timer.timestamp)
        if then is not None:
            self.follow_up.remove(timer.timestamp)
            ctx.timers.event_time(then) if timer.domain == "event" else ctx.timers.processing_time(then)
        yield ctx.key, f"{timer.domain} timer {timer.timestamp}"


class Mean(hw.AggregateFunction[int, tuple[int, int], float]):
    def create(self) -> tuple[int, int]:
        return 0, 0

    def add(self, accumulator: tuple[int, int], value: int) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]


class States(hw.KeyedProcessFunction):
    """Each row names a kind of state and an operation; the whole of that state comes out."""

    value = hw.ValueState("bigint", default=0)
    list = hw.ListState("bigint")
    map = hw.MapState("string", "bigint")
    largest = hw.ReducingState("bigint", reduce=max)
    mean = hw.AggregatingState("struct<sum:bigint,count:bigint>", aggregate=Mean())

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        state, operation = event.op.split(".")
        handle = getattr(self, state)
        if operation == "put":
            handle.put(event.entry, event.n)
        elif operation == "remove":
            handle.remove(event.entry)
        elif operation == "update":
            handle.update([event.n, event.n + 1])
        elif operation == "clear":
            handle.clear()
        elif operation != "get":
            getattr(handle, operation)(event.n)
        yield ctx.key, str(self.map.items() if state == "map" else handle.get())


class Running(hw.KeyedProcessFunction):
    """The running total of a key, said again when event time reaches the end of its row's ten."""

    total = hw.ValueState("bigint", default=0)
    big = hw.OutputTag("big", "k string, n long")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        self.total.set(self.total.get() + event.n)
        if ctx.timestamp is not None:
            ctx.timers.event_time(ctx.timestamp // 10 * 10 + 9)
        if event.n >= 100:
            ctx.output(self.big, event)
        yield ctx.key, self.total.get()

    def on_timer(self, timer: hw.Timer, ctx: hw.Context) -> Iterator[Any]:
        if self.total.get() >= 100:
            ctx.output(self.big, (ctx.key, -self.total.get()))
        yield ctx.key, self.total.get()


class Split(hw.ProcessFunction):
    odd = hw.OutputTag("odd", "k string, n long")

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if event.n % 2:
            ctx.output(self.odd, event)
        else:
            yield event


class Parcels(hw.ProcessFunction):
    """Holds numbers back until there are three; `open` counts those it finds, as a restart would."""

    held = hw.OperatorListState("bigint")
    sent = hw.UnionListState("struct<k:string,n:bigint>")
    small = hw.OutputTag("small", "n long")

    def open(self) -> None:
        self.count = len(self.held.get())

    def process(self, event: Any, ctx: hw.Context) -> Iterator[Any]:
        if ctx.timestamp is not None and ctx.timestamp <= ctx.watermark:
            ctx.output(self.small, (event.n,))
            return
        self.held.add(event.n)
        self.count += 1
        if self.count == 3:
            self.sent.add_all([(event.k, n) for n in self.held.get()])
            yield ctx.now, str([tuple(parcel) for parcel in self.sent.get()])
            self.held.clear()
            self.count = 0


NUMBERS = "k string, n long"


def running(stream: Stream, uid: str = "running") -> Any:
    return stream.key_by("k").process(Running(), NUMBERS).with_uid(uid)


def timers(stream: Stream) -> dict[str, Stream]:
    return {"main": stream.key_by("k").process(Timers(), OUT)}


def states(stream: Stream) -> dict[str, Stream]:
    return {"main": stream.key_by("k").process(States(), OUT)}


def side_outputs(stream: Stream) -> dict[str, Stream]:
    step = running(stream)
    split = stream.process(Split(), NUMBERS)
    return {"main": step, "big": step.side_output(Running.big), "even": split, "odd": split.side_output(Split.odd)}


def branches(stream: Stream) -> dict[str, Stream]:
    doubled = stream.select("k", "n * 2 as n").where("n > 2")
    return {"main": running(stream), "doubled": running(doubled, "doubled"), "plain": doubled}


def unions(stream: Stream) -> dict[str, Stream]:
    flipped = stream.map(lambda r: (r.k, -r.n))
    return {"main": running(stream.union(flipped)), "deep": running(running(stream, "one").union(stream), "two")}


def chained(stream: Stream) -> dict[str, Stream]:
    return {"main": running(running(stream, "first").where("n % 2 = 0"), "second")}


def stateless(stream: Stream) -> dict[str, Stream]:
    many = stream.flat_map(lambda r: [(r.k, i) for i in range(r.n)])
    return {"main": many.filter(lambda r: r.n != 1).map(lambda r: (r.k + "!", r.n)), "none": stream.where("n > 1000")}


def by_letter(key: str, parallelism: int) -> int:
    return "ab".index(key) % parallelism


def by_sign(is_negative: bool, parallelism: int) -> int:
    return 0 if is_negative else parallelism - 1


async def ask(row: Any) -> Any:
    """Below nothing no answer comes, for nothing none is given."""
    await asyncio.sleep(3600 if row.n < 0 else 0)
    return (row.k, row.n * 2) if row.n else None


def map_async(stream: Stream) -> dict[str, Stream]:
    late = hw.OutputTag("late", NUMBERS)
    asked = stream.map_async(ask, capacity=2, timeout="5 ms", timeout_to=late)
    return {"main": asked, "late": asked.side_output(late), "totals": running(asked)}


PLACES = pa.table({"k": ["a", "b", "b", None], "place": ["here", "there", "nowhere", "lost"]})


def halves(keys: list[int]) -> dict[int, tuple[int]]:
    return {n: (n // 2,) for n in keys if n % 2 == 0}


def lookup_join(stream: Stream) -> dict[str, Stream]:
    found = stream.lookup_join(halves, on="n", how="inner", schema="n long", suffix="_half", cache=2, ttl="10 s")
    return {
        "main": stream.lookup_join(PLACES, on="k"),
        "found": found,
        "totals": running(found.select("k", "n_half as n")),
    }


def partitioning(stream: Stream) -> dict[str, Stream]:
    return {
        "main": running(stream.rebalance().map(lambda r: r)),
        "everywhere": stream.broadcast().map(lambda r: r),
        "first": running(stream.global_().filter(lambda r: True), "first"),
        "chosen": running(stream.partition_custom(by_letter, "k").map(lambda r: r), "chosen"),
        "by_sign": stream.partition_custom(by_sign, lambda r: r.n < 0, type="boolean").where("n <> 3"),
    }


def operator_state(stream: Stream) -> dict[str, Stream]:
    parcels = stream.global_().process(Parcels(), "now long, sent string")
    return {"main": parcels, "small": parcels.side_output(Parcels.small)}


PROGRAMS: dict[str, Program] = {
    program.__name__: program
    for program in (
        timers,
        states,
        side_outputs,
        branches,
        unions,
        chained,
        stateless,
        map_async,
        lookup_join,
        partitioning,
        operator_state,
    )
}
for module in MODULES:
    PROGRAMS |= module.PROGRAMS


@pytest.fixture(params=CONTENTS)
def transcript(request: pytest.FixtureRequest) -> Transcript:
    return Transcript.of(CONTENTS[request.param])


@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("slicing", SLICINGS)
def test_a_transcript_holds_on_the_harness(transcript: Transcript, slicing: str, crash: str) -> None:
    run_on_harness(transcript, PROGRAMS[transcript.program], slicing=slicing, crash=crash)


@pytest.mark.parametrize("slicing", ["one row", "all at once"])
@pytest.mark.parametrize("transcript", sorted(set(CONTENTS) - BY_SUBTASK), indirect=True)
def test_a_transcript_holds_while_the_parallelism_changes(transcript: Transcript, slicing: str) -> None:
    run_on_harness(transcript, PROGRAMS[transcript.program], slicing=slicing, crash=RESCALE)


@pytest.fixture
def nothing_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the disk backend write and read everything again and again."""
    monkeypatch.setattr(Bound, "ENTRIES", 0)
    monkeypatch.setattr(DiskTimers, "SHARE", 0)
    monkeypatch.setattr(disk_times, "HELD_ITEMS", 1)


@pytest.mark.usefixtures("nothing_in_memory")
@pytest.mark.parametrize("crash", CRASHES)
@pytest.mark.parametrize("transcript", BY_KEY, indirect=True)
def test_a_transcript_holds_with_state_on_disk(transcript: Transcript, crash: str) -> None:
    run_on_harness(transcript, PROGRAMS[transcript.program], slicing="one row", crash=crash, state_backend="disk")


@pytest.mark.usefixtures("nothing_in_memory")
@pytest.mark.parametrize("transcript", BY_COLUMNS, indirect=True)
def test_a_transcript_of_windows_or_joins_holds_with_state_on_disk(transcript: Transcript) -> None:
    run_on_harness(transcript, PROGRAMS[transcript.program], slicing="pairs", crash="rebuild", state_backend="disk")


@pytest.mark.usefixtures("nothing_in_memory")
@pytest.mark.parametrize("transcript", BY_KEY, indirect=True)
def test_a_transcript_holds_on_the_local_engine_with_state_on_disk(transcript: Transcript) -> None:
    program = PROGRAMS[transcript.program]
    run_on_engine(transcript, program, engine="local", slicing="pairs", parallelism=2, state_backend="disk")


@pytest.mark.parametrize("slicing", SLICINGS)
def test_a_transcript_holds_on_the_local_engine(transcript: Transcript, slicing: str) -> None:
    run_on_engine(transcript, PROGRAMS[transcript.program], engine="local", slicing=slicing)


def test_a_transcript_holds_on_several_subtasks(transcript: Transcript) -> None:
    parallelism = max(2, transcript.parallelism)
    run_on_engine(transcript, PROGRAMS[transcript.program], engine="local", slicing="pairs", parallelism=parallelism)


def test_every_program_has_a_transcript() -> None:
    assert {content["program"] for content in CONTENTS.values()} == set(PROGRAMS)
    assert len(CONTENTS) == len(FILES)


def test_a_transcript_that_does_not_hold_is_told() -> None:
    content = {
        "program": "stateless",
        "schema": NUMBERS,
        "actions": [{"rows": [{"k": "a", "n": 1}]}, "end", {"expect": []}],
    }
    for run in (run_on_harness, lambda t, p: run_on_engine(t, p, engine="local")):
        with pytest.raises(AssertionError, match=r"output 'main' must be\n  \[\]\nand is\n  \[\('a!', 0, None\)\]"):
            run(Transcript.of(content), stateless)


@pytest.mark.parametrize("actions", [[], ["end"], [{"expect": []}], ["end", {"expect": []}, {"watermark": 5}]])
def test_a_transcript_must_end(actions: list[Any]) -> None:
    with pytest.raises(ValueError, match="ends with 'end'"):
        Transcript.of({"program": "timers", "schema": NUMBERS, "actions": actions})
