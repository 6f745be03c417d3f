"""Files out in folders by value, and in sizes that are worth a file; whatever fails, each row is there once."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.parts.halves import run_epochs

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.connectors.files import rolling

FORMATS = ["parquet", "json", "csv"]


def visible(folder: Path) -> list[Path]:
    hidden = folder / "_headwater"
    return sorted(path for path in folder.rglob("*") if path.is_file() and hidden not in path.parents)


def numbers(folder: Path, format: str = "parquet") -> list[int]:  # noqa: A002
    found: list[int] = []
    for path in visible(folder):
        if format == "parquet":
            found += pq.ParquetFile(path).read()["n"].to_pylist()
        elif format == "json":
            found += [json.loads(line)["n"] for line in path.read_text().splitlines()]
        else:
            found += pa_csv.read_csv(path)["n"].to_pylist()
    return sorted(found)


def job(folder: Path, count: int = 30, **settings: Any) -> hw.Environment:
    env = hw.Environment("files", engine="local", max_rows_per_epoch=10)
    rows = [(n, f"k{n % 2}") for n in range(count)]
    env.from_rows(rows, "n long, k string").sink(hw.connectors.files(folder, **settings), name="out")
    return env


def test_folders_are_named_as_readers_expect(tmp_path: Path) -> None:
    day = dt.date(2024, 1, 2)
    rows: list[Any] = [(1, day, "a/b: 100%", True), (2, day, None, False), (3, None, "", True), (4, day, "ü", None)]
    env = hw.Environment("files", engine="local")
    sink = hw.connectors.files(tmp_path, partition_by=["day", "k", "ok"])
    env.from_rows(rows, "n int, day date, k string, ok boolean").sink(sink)
    env.run()
    none = "__HIVE_DEFAULT_PARTITION__"
    assert {path.parent.relative_to(tmp_path).as_posix() for path in visible(tmp_path)} == {
        "day=2024-01-02/k=a%2Fb%3A 100%25/ok=true",
        f"day=2024-01-02/k={none}/ok=false",
        f"day={none}/k={none}/ok=true",
        f"day=2024-01-02/k=ü/ok={none}",
    }
    schema = hw.Schema.of("n int, day date, k string, ok boolean").arrow
    found = ds.dataset(tmp_path, format="parquet", schema=schema, partitioning="hive").to_table().to_pylist()
    without_empty = [(n, day, k or None, ok) for n, day, k, ok in rows]
    assert sorted((tuple(row.values()) for row in found), key=str) == sorted(without_empty, key=str)


def test_rows_keep_their_order_in_a_folder(tmp_path: Path) -> None:
    job(tmp_path, partition_by=["k"], format="json").run()
    paths = visible(tmp_path)
    assert len(paths) == 6
    for path in paths:
        found = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["n"] for row in found] == sorted(row["n"] for row in found)
        assert all(set(row) == {"n"} and f"k{row['n'] % 2}" == path.parent.name.removeprefix("k=") for row in found)


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (["x"], "cannot name folders after 'x'"),
        (["k", "k"], "partitions by some of its columns, each once"),
        (["k", "n", "y"], "there is no field 'y'"),
    ],
)
def test_columns_that_make_no_folders_are_refused(tmp_path: Path, columns: list[str], why: str) -> None:
    env = hw.Environment("files", engine="local")
    env.from_rows([], "n long, k string, x double").sink(hw.connectors.files(tmp_path, partition_by=columns))
    with pytest.raises((hw.GraphError, hw.SchemaError), match=why):
        env.run()


def test_one_column_is_given_as_a_list(tmp_path: Path) -> None:
    with pytest.raises(hw.GraphError, match="partitions by a list of columns"):
        hw.connectors.files(tmp_path, partition_by="day")


@pytest.mark.parametrize("format", FORMATS)
def test_small_epochs_become_one_file_at_the_end(tmp_path: Path, format: str) -> None:  # noqa: A002
    seen: list[int] = []

    def look(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PUBLISHED:
            seen.append(len(visible(tmp_path)))

    job(tmp_path, format=format, roll_bytes=1 << 20).run(on_step=look)
    assert seen == [0, 0, 1]
    assert numbers(tmp_path, format) == list(range(30))
    assert [path.name for path in visible(tmp_path)] == [
        f"out-0000000002-from-0000000000.{'jsonl' if format == 'json' else format}"
    ]
    (line,) = (tmp_path / "_headwater" / "manifest.jsonl").read_text().splitlines()
    assert [file["rows"] for file in json.loads(line)["files"]] == [30]
    assert not [path for path in (tmp_path / "_headwater" / "held").rglob("*") if path.is_file()]


def test_a_file_is_seen_when_it_is_large_enough_and_larger_ones_are_split(tmp_path: Path) -> None:
    job(tmp_path / "one", format="json", roll_bytes=400).run()
    sizes = [path.stat().st_size for path in visible(tmp_path / "one")]
    assert numbers(tmp_path / "one", "json") == list(range(30))
    assert len(sizes) == 2
    job(tmp_path / "two", format="json", roll_bytes=100, partition_by=["k"]).run()
    assert numbers(tmp_path / "two", "json") == list(range(30))
    env = hw.Environment("files", engine="local")
    env.from_rows([(n,) for n in range(1000)], "n long").sink(
        hw.connectors.files(tmp_path / "three", format="json", roll_bytes=2000)
    )
    env.run()
    assert numbers(tmp_path / "three", "json") == list(range(1000))


def test_a_large_epoch_is_staged_in_files_of_the_size(tmp_path: Path) -> None:
    sink = hw.connectors.files(tmp_path, format="json", roll_bytes=100)
    table = pa.table({"n": list(range(100))})
    staged = list(sink.stage_all(table, tmp_path / "x.jsonl", "x.jsonl"))
    assert len(staged) > 5
    assert all(path.stat().st_size <= 120 for path, _, _ in staged)
    rows = [json.loads(line)["n"] for path, _, _ in staged for line in path.read_text().splitlines()]
    assert rows == list(range(100))
    assert sum(count for _, _, count in staged) == 100
    assert len({name for _, name, _ in staged}) == len(staged)


def test_files_are_seen_when_the_epochs_have_grown_old(tmp_path: Path) -> None:
    seen: list[int] = []

    def look(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PUBLISHED:
            seen.append(len(numbers(tmp_path)))

    times = {-1: 0, 0: 0, 1: 4000, 2: 5000, 3: 6000, 4: 12_000}
    job(tmp_path, count=50, roll_every="5 s").run(on_step=look, clock=lambda epoch: times[epoch])
    assert seen == [0, 0, 30, 30, 50]


def test_what_is_held_is_seen_when_the_job_stops(tmp_path: Path) -> None:
    run_epochs(job(tmp_path, roll_bytes=1 << 20), 2)
    assert numbers(tmp_path) == list(range(20))


def test_a_job_goes_on_from_a_savepoint_with_what_was_held(tmp_path: Path) -> None:
    path = run_epochs(job(tmp_path / "out", roll_bytes=1 << 20), 1).stop(savepoint=tmp_path / "sp")
    job(tmp_path / "out", roll_bytes=1 << 20).run(from_=path)
    assert numbers(tmp_path / "out") == list(range(30))


def test_what_was_held_of_epochs_after_a_savepoint_is_given_up(tmp_path: Path) -> None:
    """The old job has gone on, and dies before anybody has seen what it wrote."""
    out = tmp_path / "out"

    jobs: list[Any] = []
    started = threading.Event()

    def save_and_die(step: hw.EpochStep, epoch: int) -> None:
        if step is hw.EpochStep.PLANNED and epoch == 1:
            started.wait()
            jobs[0].savepoint(tmp_path / "sp")
        if step is hw.EpochStep.CLEANED and epoch == 1:
            raise RuntimeError("dies")

    jobs.append(job(out, roll_bytes=1 << 20).start(on_step=save_and_die))
    started.set()
    with pytest.raises(RuntimeError, match="dies"):
        jobs[0].wait()
    assert visible(out) == []
    job(out, roll_bytes=1 << 20).run(from_=tmp_path / "sp")
    assert numbers(out) == list(range(30))


def test_the_notes_stay_short_however_often_files_are_rolled(tmp_path: Path) -> None:
    sink = hw.connectors.files(tmp_path, format="json", roll_bytes=1)
    sink.open("out", "job", hw.Schema.of("n long"), resumed=False)
    for epoch in range(300):
        place = tmp_path / "_headwater" / f"{epoch}.jsonl"
        sink.stage(pa.table({"n": [epoch]}), place)
        sink.publish(epoch, [Staged("out", str(place), f"out-{epoch:010d}.jsonl", 1, 9)])
    assert len((tmp_path / "_headwater" / "held.jsonl").read_text().splitlines()) <= 110
    assert len(visible(tmp_path)) == 300


class Crash(Exception):
    """The process dies here."""


@pytest.mark.parametrize("format", FORMATS)
def test_a_process_that_dies_at_any_step_leaves_nothing_out_and_nothing_twice(
    tmp_path: Path,
    format: str,  # noqa: A002
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps = iter(range(0))

    def stepping(done: Any) -> Any:
        def step(*given: Any) -> None:
            if next(steps, None) is None:
                raise Crash
            done(*given)
            if next(steps, None) is None:
                raise Crash

        return step

    monkeypatch.setattr(rolling, "write_atomically", stepping(rolling.write_atomically))
    monkeypatch.setattr(rolling, "sync_folder", stepping(rolling.sync_folder))
    monkeypatch.setattr(rolling, "append_line", stepping(rolling.append_line))

    def epochs(folder: Path) -> Iterator[tuple[int, list[Staged]]]:
        for epoch in range(4):
            sink = hw.connectors.files(folder, format=format, partition_by=["k"], roll_bytes=1200)
            table = pa.table({"n": list(range(50 * epoch, 50 * epoch + 50)), "k": ["a", "b"] * 25})
            place = folder / "_headwater" / "staging" / f"{epoch:010d}-out.{sink.extension}"
            place.parent.mkdir(parents=True, exist_ok=True)
            name = f"out-{epoch:010d}-s0000.{sink.extension}"
            yield (
                epoch,
                [
                    Staged("out", str(path), called, rows, path.stat().st_size)
                    for path, called, rows in sink.stage_all(table, place, name)
                ],
            )

    def opened(folder: Path) -> Any:
        sink = hw.connectors.files(folder, format=format, partition_by=["k"], roll_bytes=1200)
        sink.open("out", "job", hw.Schema.of("n long, k string"), resumed=True)
        return sink

    crashes, budget = 0, 0
    while True:
        folder, died = tmp_path / str(budget), False
        for epoch, files in epochs(folder):
            steps = iter(range(budget)) if not died else iter(range(10_000))
            for _ in range(3):  # the epoch is published until it is, and once more
                try:
                    sink = opened(folder)
                    sink.at_epoch(0, ended=epoch == 3)
                    sink.publish(epoch, files)
                except Crash:
                    died = True
                    steps = iter(range(10_000))
        assert numbers(folder, format) == list(range(200)), budget
        crashes += died
        budget += 1
        if not died:
            break
    assert crashes > 10
