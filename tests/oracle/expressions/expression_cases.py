"""The expressions that are tried, a line each, in a file for each table whose columns they name (`cases/`)."""

from __future__ import annotations

from pathlib import Path

from expression_tables import TABLES

CASES = [
    (table, expression)
    for table in TABLES
    for expression in (Path(__file__).parent / "cases" / f"{table}.txt").read_text().splitlines()
]
