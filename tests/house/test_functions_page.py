"""The page of functions is written from the table of functions, and the table uses functions that always give the same."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import duckdb

from headwater.data import functions

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"
SOURCES = "\n".join(path.read_text() for path in Path(functions.__file__).parent.glob("*.py"))
RAISES = {"error"}
"""DuckDB marks `error` as volatile, so that it is not computed ahead of time. It gives no value."""


def test_the_page_of_functions_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("write_functions", REFERENCE / "write_functions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert (REFERENCE / "functions.md").read_text() == module.page(), "run docs/reference/write_functions.py"


def test_duckdb_calls_every_function_it_is_asked_for_consistent() -> None:
    rows = duckdb.sql(
        "SELECT function_name, stability FROM duckdb_functions() WHERE function_type = 'scalar'"
    ).fetchall()
    stability = dict(rows)
    called = {name for name in re.findall(r"\b([a-z][a-z0-9_]*)\(", SOURCES) if name in stability}
    assert len(called) > 80
    assert {name for name in called if stability[name] != "CONSISTENT"} == RAISES


def test_a_name_means_one_function() -> None:
    names = [name for family in functions.FAMILIES.values() for function in family for name in function.names]
    assert len(names) == len(set(names))
    assert not functions.AGGREGATES & set(names)
    assert functions.CHANGING & set(names) == {"UNIX_TIMESTAMP"}, "with an argument it is the same each time"
