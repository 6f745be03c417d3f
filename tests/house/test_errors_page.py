"""The page of errors is complete: an operator who meets one finds it there by its name and its text."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import headwater as hw
from headwater.spark.errors import DiskFull, EngineGone

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "errors.md"
ERRORS = (
    hw.JobError,
    hw.StateBudgetExceeded,
    hw.ChangelogError,
    hw.SavepointError,
    hw.PublishError,
    DiskFull,
    EngineGone,
)
ROW = re.compile(
    r"^\| `(?P<name>\w+\.\w+)` \| (?P<text>[^|]+) \| (?P<cause>[^|]+) \| (?P<way_out>[^|]+) \|$", re.MULTILINE
)


ROWS = list(ROW.finditer(PAGE.read_text()))


def texts() -> dict[str, str]:
    """Every error by name, made with placeholders for its facts."""
    found = {}
    for error in ERRORS:
        for name, made in vars(error).items():
            if isinstance(made, classmethod):
                parameters = inspect.signature(getattr(error, name)).parameters.values()
                given = {p.name: _placeholder(str(p.annotation)) for p in parameters}
                found[f"{error.__name__}.{name}"] = str(getattr(error, name)(**given))
    return found


def _placeholder(annotation: str) -> object:
    kinds = {
        "int": 7,
        "int | None": 7,
        "list[int]": [7],
        "list[str]": ["…"],
        "Sequence[str]": ["…"],
        "bool": False,
        "float": 7.0,
        "bytes": b"?",
    }
    return kinds.get(annotation, "…")


def test_every_error_of_operation_is_on_the_page_and_no_other() -> None:
    assert sorted(row["name"] for row in ROWS) == sorted(texts())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_the_page_quotes_the_text(row: re.Match[str]) -> None:
    said = texts()[row["name"]].replace("'…'", "…").replace("7", "…")
    for part in row["text"].split("…"):
        assert part.strip() in said, f"{part!r} is not in {said!r}"


@pytest.mark.parametrize("name", sorted(texts()))
def test_an_error_says_a_fact_and_a_way_out(name: str) -> None:
    assert re.search(r"[;\n] ?\S", texts()[name]), texts()[name]
