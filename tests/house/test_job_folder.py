"""One owner of the job folder: what is in it is named in the layout alone, and what Spark keeps in `spark/` alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "headwater"
FILES = re.compile(
    r"(job|status|outline|rewind|published|marks|backlog|replay)\.json|(epochs|durations|restarts)\.jsonl|manifest-|plan-|outbox"
)
SPARKS = re.compile(r"commits|_metadata|_stateSchema")


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """The texts of a module that are not documentation; of one with values in it, what stands around them."""
    tree = ast.parse(path.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.lineno, node.value


def named(pattern: re.Pattern[str], but: str) -> list[str]:
    return [
        f"{path.relative_to(PACKAGE)}:{line} {text!r}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(but)
        for line, text in literals(path)
        if pattern.fullmatch(text)
    ]


def test_the_files_of_a_job_folder_are_named_in_the_layout_alone() -> None:
    assert named(FILES, "job/layout.py") == []


def test_what_spark_keeps_is_known_to_spark_alone() -> None:
    assert named(SPARKS, "spark/") == []
