"""The conformance kit: our own connectors pass it, and connectors with a fault are told which rule they break."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import headwater as hw
from headwater.connectors.contract import DeadLetters, Guarantee, Positions, Sink, Source, Staged, read_staged
from headwater.connectors.memory import RowsSource
from headwater.testing import NotConforming, check_sink, check_source

SCHEMA = "k string, n bigint"
ROWS = [(f"k{i % 3}", i) for i in range(40)]


def log_source(folder: Path) -> Source:
    hw.EventLog(folder).create_topic("events", SCHEMA, partitions=3).append_keyed(
        [{"k": k, "n": n} for k, n in ROWS], by="k"
    )
    return hw.connectors.log(folder, "events")


def files_source(folder: Path) -> Source:
    (folder / "in").mkdir()
    for start in range(0, len(ROWS), 7):
        lines = [json.dumps({"k": k, "n": n}) for k, n in ROWS[start : start + 7]]
        (folder / "in" / f"{start}.json").write_text("\n".join(lines))
    return hw.connectors.read_files(folder / "in", format="json", splits=3, settle="0 s")


SOURCES = {
    "files": files_source,
    "log": log_source,
    "generator": lambda _: hw.connectors.generator(lambda i: ROWS[i], count=len(ROWS), splits=3),
    "rows": lambda _: RowsSource([ROWS[:25], ROWS[25:], []], hw.Schema.of(SCHEMA)),
    "timed rows": lambda _: hw.testing.TimedRows([[(i, row) for i, row in enumerate(ROWS)]], SCHEMA),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_sources_conform(name: str, tmp_path: Path) -> None:
    found = check_source(SOURCES[name](tmp_path), SCHEMA, folder=tmp_path)
    assert sorted(zip(*found.to_pydict().values(), strict=True)) == sorted(ROWS)


def files_in(folder: Path) -> list[tuple[Any, ...]]:
    tables = [pq.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def test_the_files_sink_conforms(tmp_path: Path) -> None:
    out = tmp_path / "out"
    check_sink(lambda: hw.connectors.files(out), SCHEMA, ROWS, lambda: files_in(out), tmp_path / "outbox")


@pytest.mark.parametrize("settings", [{"roll_bytes": 10_000}, {"roll_every": "1 h", "partition_by": ["k"]}], ids=str)
def test_the_files_sink_conforms_when_it_rolls(tmp_path: Path, settings: dict[str, Any]) -> None:
    out = tmp_path / "out"

    def read() -> list[tuple[Any, ...]]:
        if not out.exists():
            return []
        table = ds.dataset(out, schema=hw.Schema.of(SCHEMA).arrow, format="parquet", partitioning="hive").to_table()
        return [tuple(row.values()) for row in table.to_pylist()]

    check_sink(lambda: hw.connectors.files(out, **settings), SCHEMA, ROWS, read, tmp_path / "outbox", ordered=False)


def test_the_memory_sink_conforms(tmp_path: Path) -> None:
    sink = hw.connectors.memory()
    is_first = itertools.chain([True], itertools.repeat(False))
    check_sink(
        lambda: sink if next(is_first) else hw.connectors.memory(), SCHEMA, ROWS, lambda: sink.rows, tmp_path / "outbox"
    )


class Numbers(Source):
    """A source that keeps every rule, for subclasses that break one."""

    bounded = True

    def describe(self) -> str:
        return "numbers"

    def check(self, schema: hw.Schema) -> None:
        """Nothing can be wrong."""

    def earliest(self) -> Positions:
        return {"a": 0, "b": 5}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {"a": 20, "b": 9}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        if start < end:
            yield pa.RecordBatch.from_pydict({"n": list(range(start, end))})


class TellsItsPassword(Numbers):
    def describe(self) -> str:
        return "numbers, by user:hunter2"


class HoldsALock(Numbers):
    def __init__(self) -> None:
        self.lock = threading.Lock()


class StartsBelowZero(Numbers):
    def earliest(self) -> Positions:
        return {"a": -1}


class LosesASplit(Numbers):
    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {"a": 20}


class GoesBack(Numbers):
    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {"a": 20 if start["a"] == 0 else 10, "b": 9}


class Grows(Numbers):
    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return {"a": start["a"] + 20, "b": 9}


class Forgets(Numbers):
    def __init__(self) -> None:
        self.reads = 0

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        self.reads += 1
        yield from super().read(split, start + self.reads, end)


class RoundsToTens(Numbers):
    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        yield from super().read(split, start, start + (end - start) // 10 * 10)


class GivesOtherColumns(Numbers):
    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        yield pa.RecordBatch.from_pydict({"n": [1.5]})


class HasUnannouncedLetters(Numbers):
    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        yield DeadLetters(hw.DEAD_LETTERS.schema.arrow.empty_table())


class IsEmpty(Numbers):
    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        return self.earliest()


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        (TellsItsPassword, "shows no secret"),
        (HoldsALock, "leave open handles out in __getstate__"),
        (StartsBelowZero, "a number from 0"),
        (LosesASplit, "every split of earliest"),
        (GoesBack, "does not go back when asked from further on"),
        (Grows, "latest.. of a bounded source stays"),
        (Forgets, "reading a range again gives the same rows"),
        (RoundsToTens, "the pieces of a range make the whole"),
        (GivesOtherColumns, "the declared columns"),
        (HasUnannouncedLetters, "only a source with has_dead_letters"),
        (IsEmpty, "there are rows to check it with"),
    ],
)
def test_a_source_with_a_fault_is_told_the_rule(source: type[Source], rule: str) -> None:
    check_source(Numbers(), "n bigint", secrets=["hunter2"])
    with pytest.raises(NotConforming, match=f"{source.__name__}: .*{rule}"):
        check_source(source(), "n bigint", secrets=["hunter2"])


class Lines(Sink):
    """A sink that keeps every rule: what it publishes is in a dictionary that outlives it."""

    guarantee = Guarantee.EXACTLY_ONCE

    def __init__(self, kept: dict[int, list[tuple[Any, ...]]]) -> None:
        self.kept = kept

    def __deepcopy__(self, memo: object) -> Lines:
        return type(self)(self.kept)

    def describe(self) -> str:
        return "lines"

    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        if max(self.kept, default=-1) > epoch:
            raise hw.PublishError("there is later output")

    def open(self, uid: str, job_id: str, schema: hw.Schema, *, resumed: bool) -> None:
        """Nothing to open."""

    def publish(self, epoch: int, files: list[Staged]) -> None:
        self.kept[epoch] = [tuple(row.values()) for file in files for row in read_staged(file).to_pylist()]


class AppendsAgain(Lines):
    def publish(self, epoch: int, files: list[Staged]) -> None:
        before = self.kept.get(epoch, [])
        super().publish(epoch, files)
        self.kept[epoch] = before + self.kept[epoch]


class TurnsFilesAround(Lines):
    def publish(self, epoch: int, files: list[Staged]) -> None:
        super().publish(epoch, files[::-1])


class TakesAnythingOver(Lines):
    def take_over(self, uid: str, job_id: str, before: str, epoch: int) -> None:
        """No questions asked."""


class StagesNothing(Lines):
    def stage(self, table: pa.Table, path: Path) -> None:
        """Later, perhaps."""


def live(kind: type[Lines], folder: Path) -> dict[int, list[tuple[Any, ...]]]:
    kept: dict[int, list[tuple[Any, ...]]] = {}
    check_sink(lambda: kind(kept), SCHEMA, ROWS, lambda: [row for e in sorted(kept) for row in kept[e]], folder)
    return kept


@pytest.mark.parametrize(
    ("sink", "rule"),
    [
        (AppendsAgain, "an epoch that is published again changes nothing"),
        (TurnsFilesAround, "visible, in order"),
        (TakesAnythingOver, "take_over.. refuses output from after the savepoint"),
        (StagesNothing, "writes the file it is told to"),
    ],
)
def test_a_sink_with_a_fault_is_told_the_rule(sink: type[Lines], rule: str, tmp_path: Path) -> None:
    live(Lines, tmp_path / "good")
    with pytest.raises(NotConforming, match=f"{sink.__name__}: .*{rule}"):
        live(sink, tmp_path / "bad")


def test_a_sink_that_doubles_may_if_it_says_so(tmp_path: Path) -> None:
    class Honest(AppendsAgain):
        guarantee = Guarantee.AT_LEAST_ONCE

    assert len(live(Honest, tmp_path)[2]) == 3
