"""Console, blackhole, memory and generator."""

from __future__ import annotations

import io
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.connectors.contract import Staged
from headwater.connectors.memory import RowsSource


def test_the_console_prints_committed_rows_as_json_lines() -> None:
    out = io.StringIO()
    env = hw.Environment("console", engine="local", max_rows_per_epoch=1)
    env.from_rows([("ü", 1), (None, 2)], "k string, n long").sink(hw.connectors.console(out), name="screen")
    env.run()
    assert out.getvalue() == 'screen 0 {"k": "ü", "n": 1}\nscreen 1 {"k": null, "n": 2}\n'


def test_print_goes_to_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    env = hw.Environment("console", engine="local")
    env.from_rows([(1,)], "n long").print()
    env.run()
    assert capsys.readouterr().out == 'print 0 {"n": 1}\n'


def test_a_console_can_be_shipped_to_tasks() -> None:
    assert pickle.loads(pickle.dumps(hw.connectors.console(io.StringIO()))).describe() == "console"


def test_a_blackhole_takes_rows_and_changes_of_rows_and_stages_nothing(tmp_path: Path) -> None:
    env = hw.Environment("blackhole", engine="local")
    counts = env.from_rows([("a",), ("a",)], "k string", name="rows").key_by("k").agg(n=hw.count())
    counts.sink(hw.connectors.blackhole())
    env.execute_sql("CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')")
    env.execute_sql("INSERT INTO nowhere SELECT COUNT(*) FROM (VALUES (1), (2))")
    env.run()
    path = tmp_path / "staged.arrow"
    assert list(hw.connectors.blackhole().stage_all(pa.table({"n": [7]}), path, "sink-0")) == []
    assert not path.exists()


def test_memory_keeps_rows_here_and_ships_none() -> None:
    sink = hw.connectors.memory()
    env = hw.Environment("memory", engine="local")
    env.from_rows([(1, "a")], "n long, s string").sink(sink)
    env.run()
    assert sink.rows == [(1, "a")]
    assert sink.rows[0].s == "a"
    assert pickle.loads(pickle.dumps(sink)).rows == []


def test_memory_takes_an_epoch_once_in_a_run_and_the_rows_of_every_run(tmp_path: Path) -> None:
    sink, schema = hw.connectors.memory(), hw.Schema.of("n long")
    path = tmp_path / "staged.arrow"
    sink.stage(pa.table({"n": [7]}, schema=schema.arrow), path)
    files = [Staged("sink", str(path), "sink-0", 1, path.stat().st_size)]
    sink.open("sink", "job", schema, resumed=False)
    for epoch in (0, 0, 1):
        sink.publish(epoch, files)
    sink.open("sink", "job", schema, resumed=True)
    sink.publish(1, files)
    assert sink.rows == [(7,), (7,)]
    for job, resumed in (("job", False), ("another", True)):
        sink.open("sink", job, schema, resumed=resumed)
        sink.publish(0, files)
    assert sink.rows == [(7,)] * 4


def test_rows_are_checked_when_they_are_given() -> None:
    with pytest.raises(hw.RowError, match="step 'from_rows', field 'n'"):
        hw.Environment("rows", engine="local").from_rows([("x",)], "n long")


def test_rows_in_several_splits_are_read_by_range() -> None:
    source = RowsSource([[(1,), (2,), (3,)], [(4,)]], hw.Schema.of("n long"))
    assert source.earliest() == {"0": 0, "1": 0}
    assert source.latest({"0": 1, "1": 0}, 0) == {"0": 3, "1": 1}
    assert [n for batch in source.read("0", 1, 3) for n in batch["n"].to_pylist()] == [2, 3]


def generated(source: Any, schema: str = "n long") -> list[int]:
    return sorted(r.n for r in hw.Environment("g", engine="local").source(source, schema).collect())


@pytest.mark.parametrize("splits", [1, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_generator_makes_every_row_once(count: int, splits: int) -> None:
    assert generated(hw.connectors.generator(lambda i: (i,), count=count, splits=splits)) == list(range(count))


def test_a_generator_reads_the_same_range_the_same_way() -> None:
    source = hw.connectors.generator(lambda i: {"n": i * i}, count=100, splits=2)
    source.check(hw.Schema.of("n long"))
    whole = [n for batch in source.read("1", 0, 50) for n in batch["n"].to_pylist()]
    assert whole == [i * i for i in range(1, 100, 2)]
    assert [n for batch in source.read("1", 10, 12) for n in batch["n"].to_pylist()] == whole[10:12]


def test_a_generator_with_a_rate_follows_the_time_that_passed() -> None:
    source = hw.connectors.generator(lambda i: (i,), rate=100.0, splits=2)
    assert not source.bounded
    assert source.latest({"0": 0, "1": 5}, 1000) == {"0": 50, "1": 50}
    assert source.latest({"0": 60, "1": 5}, 1000) == {"0": 60, "1": 50}  # never back
    assert source.latest({"0": 0, "1": 0}, 0) == {"0": 0, "1": 0}
    bounded = hw.connectors.generator(lambda i: (i,), rate=100.0, count=30)
    assert bounded.latest({"0": 0}, 10_000) == {"0": 30}


def test_a_generator_needs_an_end_or_a_rate() -> None:
    with pytest.raises(hw.GraphError, match=r"give count=\.\.\. or rate="):
        hw.connectors.generator(lambda i: (i,))
    with pytest.raises(hw.GraphError, match="at least one split"):
        hw.connectors.generator(lambda i: (i,), count=1, splits=0)


def test_a_row_a_generator_makes_is_checked() -> None:
    with pytest.raises(hw.RowError, match="step 'generator', field 'n': value 'x'"):
        generated(hw.connectors.generator(lambda i: ("x",), count=1))


def test_sources_and_sinks_say_what_they_are(tmp_path: Path) -> None:
    assert repr(hw.connectors.memory()) == "MemorySink(memory)"
    assert repr(hw.connectors.files(tmp_path)) == f"FilesSink(parquet files in {tmp_path})"
    assert repr(hw.connectors.log(tmp_path, "orders")) == f"LogSource(log topic orders in {tmp_path})"
