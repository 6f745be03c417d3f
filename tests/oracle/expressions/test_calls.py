"""Functions are computed by columns: over more rows nothing more is called."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from beside import BATCHES, SCHEMAS
from expression_cases import CASES
from tests.parts.calls import growth

from headwater.data.expressions import compile_select, run
from headwater.data.functions import FAMILIES
from headwater.errors import SchemaError

BEYOND_FLINK = {"DATE_TRUNC"}
"""Which no case has."""
UNWRITTEN = {"NEGATE": "-", "PLUS": "+"}


def rows_for(table: str, expression: str) -> pa.Table | None:
    """Rows that an expression can be computed for: all of its table, or else one."""
    batch = BATCHES[table]
    for rows in (batch, *(batch.slice(at, 1) for at in range(len(batch)))):
        try:
            query, schema = compile_select([f"{expression} AS x"], SCHEMAS[table], "calls")
            run(query, rows, schema.arrow)
        except (SchemaError, duckdb.Error, pa.ArrowException):
            continue
        return rows
    return None


def more_calls(table: str, expression: str, rows: pa.Table) -> float:
    query, schema = compile_select([f"{expression} AS x"], SCHEMAS[table], "calls")

    def runs(times: int) -> Callable[[], Any]:
        batch = pa.concat_tables([rows] * times).combine_chunks()
        return lambda: run(query, batch, schema.arrow)

    return growth(runs, 10, 100)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_function_is_called_row_by_row(family: str) -> None:
    for function in FAMILIES[family]:
        words = UNWRITTEN.get(function.name, function.name).removesuffix(" TO").split()
        named = re.compile(r"\W+(\w+ )?".join(re.escape(word) for word in words), re.IGNORECASE)
        tried = [case for case in CASES if named.search(case[1])]
        found = next(((*case, rows) for case in tried if (rows := rows_for(*case)) is not None), None)
        assert found is not None or function.name in BEYOND_FLINK, function.name
        assert found is None or more_calls(*found) == 0, function.name
