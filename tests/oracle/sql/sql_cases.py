"""The statements that are tried: those written by hand, in a file for each construct (`cases/`), and generated ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sql_tables import TABLES, used

HERE = Path(__file__).parent
CONSTRUCTS = sorted(path.stem for path in (HERE / "cases").glob("*.sql"))


def written(construct: str) -> list[str]:
    """The statements of a file, which end in a semicolon at the end of a line."""
    text = (HERE / "cases" / f"{construct}.sql").read_text()
    return [statement.strip() for statement in text.split(";\n") if statement.strip()]


def case(statement: str) -> dict[str, Any]:
    """What Flink is asked."""
    return {"tables": {name: TABLES[name] for name in used(statement)}, "statement": statement}
