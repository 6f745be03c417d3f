"""Columns of JSON that no record has: nulls are all that comes of a mistyped name, so it is told of."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import headwater as hw


def told(caplog: pytest.LogCaptureFixture, folder: Path, schema: str, **settings: Any) -> list[str]:
    """What is told of a bounded run that reads a folder."""
    env = hw.Environment("absent", engine="local")
    source = hw.connectors.read_files(
        folder, format="json", watch=False, settle="0 s", max_files_per_epoch=1, **settings
    )
    env.source(source, schema, name="events").sink(hw.connectors.memory())
    with caplog.at_level(logging.WARNING, "headwater"):
        env.run(bounded=True)
    return [record.getMessage() for record in caplog.records]


def write(folder: Path, *files: list[dict[str, Any]]) -> Path:
    for number, rows in enumerate(files):
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_column_that_no_record_has_is_told_of_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    events = [{"user": "ann", "n": n} for n in range(60)]
    folder = write(tmp_path, events, events, events)
    (line,) = told(caplog, folder, "usr string, n long")
    assert line == (
        "source 'events': none of the first 120 rows has a value in 'usr'; its records may have another name for it: "
        "mend the schema, or leave the column out"
    )


def test_at_the_end_of_few_rows_it_is_told_of_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (line,) = told(caplog, write(tmp_path, [{"user": "ann"}]), "user string, amont double, when_ string")
    assert "none of the first 1 rows has a value in 'amont', 'when_'" in line


def test_a_column_that_some_record_has_is_not_told_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [{"user": "ann"}] * 30
    folder = write(tmp_path, rows, [*rows, {"user": "bob", "note": "hi"}], rows)
    assert told(caplog, folder, "user string, note string", splits=2) == []


def test_nulls_in_formats_that_have_their_columns_are_as_they_are(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    env = hw.Environment("given", engine="local")
    env.from_rows([{"user": None}] * 200, "user string").sink(hw.connectors.memory())
    with caplog.at_level(logging.WARNING, "headwater"):
        env.run()
    assert caplog.records == []
