"""A file is the noun it holds, a class says what it is, and neither grows without end."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from headwater import errors
from headwater.eventlog import errors as log_errors
from headwater.savepoints import errors as savepoint_errors

PROJECT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "examples", "tools")
FILES = sorted(path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.py"))
SOURCES = [path for path in FILES if path.is_relative_to(PROJECT / "src")]

ERRORS = {
    name
    for texts in (errors, log_errors, savepoint_errors)
    for name, thing in vars(texts).items()
    if isinstance(thing, type) and issubclass(thing, errors.HeadwaterError)
}
"""What is raised on purpose, for users to meet."""

EMPTY_WORDS = {"util", "utils", "helper", "helpers", "common", "misc", "manager", "impl", "base", "abstract"}
"""Names that say nothing about what is inside."""

SOFT_LINES, HARD_LINES = 400, 600

LONGER_THAN_SOFT: dict[str, str] = {
    "src/headwater/descriptors.py": "the kinds of state side by side, each with the overloads that type checkers read",
    "src/headwater/operators/window/operator.py": "Flink's window operator, whose steps are read together",
}
"""Source files over the soft limit, each with its reason."""


def test_module_names_say_what_is_inside() -> None:
    names = [path.relative_to(PROJECT) for path in FILES]
    assert [str(name) for name in names if _words(name) & EMPTY_WORDS] == []


def _words(name: Path) -> set[str]:
    return {word for part in name.with_suffix("").parts for word in part.strip("_").split("_")}


def test_no_class_is_called_base_or_abstract() -> None:
    wrong = [
        f"{path.relative_to(PROJECT)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and re.match(r"_*(Base|Abstract)(?![a-z])|\w+(Base|Impl)$", node.name)
    ]
    assert wrong == []


def test_no_file_is_longer_than_the_hard_limit() -> None:
    assert [name for name, lines in _lines(FILES).items() if lines > HARD_LINES] == []


def test_source_files_over_the_soft_limit_have_a_reason() -> None:
    long = {name for name, lines in _lines(SOURCES).items() if lines > SOFT_LINES}
    assert long == set(LONGER_THAN_SOFT), "split the file, or give its reason here; take out a file that has shrunk"


def _lines(paths: list[Path]) -> dict[str, int]:
    return {str(path.relative_to(PROJECT)): len(path.read_text().splitlines()) for path in paths}


def test_the_texts_of_errors_are_made_where_errors_are_defined() -> None:
    wrong = [
        f"{path.relative_to(PROJECT)}:{node.lineno} {node.func.id}"
        for path in SOURCES
        if path.name != "errors.py" and path.parent.name != "errors"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS
        if node.args and isinstance(node.args[0], ast.Constant | ast.JoinedStr)
    ]
    assert wrong == []
