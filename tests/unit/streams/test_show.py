from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import headwater as hw


def env() -> hw.Environment:
    return hw.Environment("show", engine="local", parallelism=1, checkpoint_interval="1 ms")


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().out.splitlines()


def test_rows_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [("ann", 1.5, [1, 2], "+I"), ("a" * 50, None, [], "-D"), ("two\nlines", 2.0, None, "+I")]
    env().from_rows(rows, "user string, n double, seen array<long>, row_kind string").as_changelog().show()
    assert shown(capsys) == [
        "user                                      n     seen    row_kind",
        "----------------------------------------  ----  ------  --------",
        "ann                                       1.5   [1, 2]  +I",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…  null  []      -D",
        "two\\nlines                                2.0   null    +I",
    ]


def test_only_so_many_rows_are_shown_and_the_job_itself_stays_as_it_was(capsys: pytest.CaptureFixture[str]) -> None:
    job = env()
    rows = job.from_rows([(n,) for n in range(30)], "n long")
    rows.show(2)
    rows.where("n > 99").show()
    assert shown(capsys) == ["n", "-", "0", "1", "(the first 2 rows of 30)", "n", "-", "(no rows)"]
    assert len(list(job.graph)) == 2


def test_a_live_source_is_shown_until_there_are_rows_enough(capsys: pytest.CaptureFixture[str]) -> None:
    endless = env().source(hw.connectors.generator(lambda n: (n,), rate=1_000_000), "n long")
    endless.deduplicate("n").show(3, timeout="60 s")
    assert shown(capsys) == ["n", "-", "0", "1", "2", "(the first 3 rows)"]


def test_a_live_source_without_rows_is_not_waited_for_long(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hw.EventLog(tmp_path).create_topic("orders", "n long", partitions=1).append([(1,)])
    orders = env().source(hw.connectors.log(tmp_path, "orders"), "n long")
    orders.show(timeout="2 s")
    orders.show(bounded=True)
    assert shown(capsys) == ["n", "-", "1", "(stopped after 2 s)", "n", "-", "1"]


def test_an_error_of_the_job_is_raised() -> None:
    with pytest.raises(hw.UserCodeError, match="ZeroDivisionError"):
        env().from_rows([(0,)], "n long").map(lambda row: (1 // row.n,)).show()
    with pytest.raises(hw.GraphError, match="shows 1 row or more; got 0"):
        env().from_rows([(0,)], "n long").show(0)


class Polars:
    """What Polars and others have in common: they export an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def test_a_table_brings_its_schema() -> None:
    table = pa.table({"user": pa.array(["ann", None], pa.large_string()), "n": pa.array([1, 2], pa.uint16())})
    for given in (table, Polars(table)):
        found = env().from_rows(given)
        assert found.schema == hw.Schema.of("user string, n int")
        assert list(map(tuple, found.collect())) == [("ann", 1), (None, 2)]


def test_text_of_few_values_is_text_however_it_is_held() -> None:
    viewed = pa.DictionaryArray.from_arrays(pa.array([1, 0, None], pa.uint32()), pa.array(["x", "y"], pa.string_view()))
    table = pa.table({"kind": viewed, "kinds": pa.LargeListArray.from_arrays([0, 1, 2, 3], viewed)})
    found = env().from_rows(Polars(table))
    assert found.schema == hw.Schema.of("kind string, kinds array<string>")
    assert list(map(tuple, found.collect())) == [("y", ["y"]), ("x", ["x"]), (None, [None])]


def test_a_column_that_no_stream_can_carry_is_named_and_may_be_left_out() -> None:
    table = Polars(pa.table({"n": [1], "at": pa.array([dt.time(1)])}))
    with pytest.raises(hw.SchemaError, match=r"column 'at' of the table of step 'rows': type 'time64\[us\]' is not"):
        env().from_rows(table)
    assert list(map(tuple, env().from_rows(table, "n long").collect())) == [(1,)]


def test_one_column_and_a_query_to_run_are_refused_with_the_way_out() -> None:
    class LazyFrame:
        def collect(self) -> pa.Table: ...

    with pytest.raises(hw.GraphError, match=r"needs a table, of columns .*; got 'ChunkedArray'; .*series\.to_frame"):
        env().from_rows(pa.chunked_array([[1, 2]]))
    with pytest.raises(
        hw.GraphError, match=r"holds its rows in memory; got 'LazyFrame'; pass what its collect\(\) giv"
    ):
        env().from_rows(LazyFrame(), "n long")


def test_a_frame_of_pandas_brings_its_columns_but_no_index() -> None:
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    frame = pd.DataFrame({"at": [moment], "n": [1]}, index=[7])
    found = env().from_rows(frame, watermarks=hw.Watermarks.monotonous("at"))
    assert found.schema == hw.Schema.of("at timestamp, n long")
    assert list(map(tuple, found.collect())) == [(moment, 1)]


def test_of_a_table_the_columns_of_a_schema_are_read_as_its_types() -> None:
    table = pa.table({"n": [1, 2], "user": ["ann", "bob"]})
    assert list(map(tuple, env().from_rows(table, "user string, n double").collect())) == [("ann", 1.0), ("bob", 2.0)]
    with pytest.raises(hw.SchemaError, match=r"^step 'rows': there is no field 'm'; the fields are n, user"):
        env().from_rows(table, "m long")
    with pytest.raises(
        hw.SchemaError, match=r"step 'rows': the table is not 'user bigint': .*; cast it, or the schema"
    ):
        env().from_rows(table, "user long")
    with pytest.raises(hw.HeadwaterError):
        env().from_rows(pa.table({"n": [1, None]}), "n long not null").collect()


def test_rows_without_a_schema_and_frames_of_spark_are_refused_with_the_way_out() -> None:
    class Frame:
        isStreaming = False  # noqa: N815  Spark's name
        schema = None

    with pytest.raises(hw.GraphError, match=r"needs the schema of its rows; got 'list'; write from_rows\(rows, "):
        env().from_rows([(1,)])
    with pytest.raises(hw.GraphError, match=r"use env\.from_dataframe"):
        env().from_rows(Frame())
