"""The documents are true: their Python runs, their links lead somewhere.

A block marked ```python runs; the blocks of a page share a namespace and an empty folder. A block that cannot run here
says why: ```python no-run: needs a cluster. The README is run as a new user would: pasted into a file, on Spark.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.parts.known_names import Reader

import headwater as hw

PROJECT = Path(__file__).parents[2]
README = PROJECT / "README.md"
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])

_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)[^)]*\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    info: str
    body: str
    line: int

    @property
    def is_python(self) -> bool:
        return self.info.split()[:1] == ["python"]

    @property
    def reason(self) -> str | None:
        """Why the block is not run; None when it is."""
        marked = re.fullmatch(r"python no-run:? *(.*)", self.info)
        return marked and marked[1]


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    return [Block(m["info"].strip(), m["body"], text.count("\n", 0, m.start()) + 1) for m in _FENCE.finditer(text)]


def name_of(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def run_here(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.is_python and block.reason is None]


LIVE = [page for page in PAGES if page != README and run_here(page)]


@pytest.mark.parametrize("page", LIVE, ids=name_of)
def test_python_of_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for block in run_here(page):
        placed = "\n" * block.line + block.body  # so that a traceback shows the line of the page
        exec(compile(placed, name_of(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_block_that_is_not_run_says_why(page: Path) -> None:
    assert [f"line {block.line}" for block in blocks(page) if block.reason == ""] == []


@pytest.mark.parametrize("page", [page for page in PAGES if any(b.reason for b in blocks(page))], ids=name_of)
def test_names_in_blocks_that_are_not_run_exist(page: Path) -> None:
    """Code that nobody runs is read instead, and what it asks of `hw` and of streams must be there."""
    reader, wrong = Reader(), []
    for block in blocks(page):
        if block.is_python:
            known = len(reader.missing)
            reader.read(block.body)
            wrong += [f"line {block.line}: {name}" for name in reader.missing[known:] if block.reason]
    assert wrong == []


@pytest.mark.parametrize(
    ("code", "missing"),
    [
        ('hw.connectors.lgo("a")', ["hw.connectors.lgo"]),
        (
            'e = hw.Environment("x")\ns = e.source(hw.connectors.log("l", "t"), "n int")\ns.key_by("n").aggregate()',
            [".aggregate"],
        ),
        ('hw.Environment("x").runn()', [".runn"]),
        ('job = hw.Environment("x").start()\njob.status().epoch\njob.halt()', [".halt"]),
        ('hw.Environment("x").from_rows([], "n int").map(len).where("n > 1").sink(hw.connectors.memory())', []),
    ],
)
def test_names_that_do_not_exist_are_found(code: str, missing: list[str]) -> None:
    found = Reader().read(code)
    assert len(found) == len(missing)
    assert all(name.endswith(end) for name, end in zip(found, missing, strict=True))


@pytest.mark.parametrize("page", LIVE, ids=name_of)
def test_pages_run_without_spark(page: Path) -> None:
    """An environment names its engine; without one it would be Spark."""
    for block in run_here(page):
        for call in re.findall(r"hw\.Environment\([^)]*\)", block.body):
            assert 'engine="local"' in call, f"line {block.line}: {call}"


@pytest.mark.spark
def test_readme_example_prints_what_it_says(tmp_path: Path) -> None:
    shown = blocks(README)
    example = next(block for block in shown if block.is_python)
    expected = next(block for block in shown[shown.index(example) :] if block.info == "text")
    program = tmp_path / "totals.py"
    program.write_text(example.body)
    for _ in range(2):  # the second time it has nothing to do, and changes nothing
        command = [sys.executable, program.name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=250, check=False)
        assert done.returncode == 0, done.stderr[-3000:]
        assert (done.stdout, done.stderr) == (expected.body, "")


def test_other_blocks_of_the_readme_go_on_from_its_example() -> None:
    """They use its `source`."""
    order, rows = "user string, ts timestamp, amount double", [("ann", datetime(2026, 1, 1, tzinfo=UTC), 20.0)]
    env = hw.Environment("readme", engine="local")
    names: dict[str, Any] = {"hw": hw, "source": env.from_rows(rows, order, hw.Watermarks.bounded("ts", "5 s"))}
    for block in run_here(README)[1:]:
        exec(compile("\n" * block.line + block.body, name_of(README), "exec"), names)
    assert [(row.user, row.total, row.orders) for row in names["per_minute"].collect()] == [("ann", 20.0, 1)]


def test_readme_example_is_short() -> None:
    example = run_here(README)[0]
    assert len([line for line in example.body.splitlines() if line.strip()]) <= 36


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for match in _LINK.finditer(_FENCE.sub("", page.read_text())):
        target, _, anchor = match["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(match["target"])
    assert broken == []


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as a code host makes them."""
    titles = (match["title"].lower() for match in _HEADING.finditer(_FENCE.sub("", page.read_text())))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_lines_fit_a_screen(page: Path) -> None:
    text = page.read_text().splitlines()
    assert [f"line {n}" for n, line in enumerate(text, 1) if len(line) > 120 and not line.startswith("|")] == []
