"""SQL expressions over Arrow batches: Flink SQL's meaning, checked when the graph is built, run by DuckDB.

Text is read by sqlglot (`dialect.py`), bound against the schema and the table of functions (`binding.py`,
`headwater.data.functions`) and becomes one SELECT of DuckDB's over one batch (`running.py`). Both libraries are imported on
first use, as most workers need neither.
"""

from __future__ import annotations

from collections.abc import Sequence

from headwater.data.expressions.running import run
from headwater.data.expressions.stages import Stage
from headwater.data.schema import Schema

__all__ = ["Stage", "compile_select", "compile_where", "computed", "run"]


def compile_select(expressions: Sequence[str], schema: Schema, step: str) -> tuple[str, Schema]:
    """The DuckDB query for some expressions, and the schema of its result. `*` stands for all columns."""
    from headwater.data.expressions.compiling import select

    return select(expressions, schema, step)


def compile_where(text: str, schema: Schema, step: str) -> str:
    """The DuckDB query that keeps the rows for which an expression is true."""
    from headwater.data.expressions.compiling import where

    return where(text, schema, step)


def computed(stages: Sequence[Stage]) -> tuple[str, Schema]:
    """The DuckDB query for stages, each over what the one before it gives, and the schema of its result."""
    from headwater.data.expressions import compiling

    return compiling.computed(stages)
