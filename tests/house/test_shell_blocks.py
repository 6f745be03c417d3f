"""Shell blocks of the documents: every command of ours in them exists, with its options, and every target of make.

The tutorial's are run as they are, by tests/examples/test_tutorial.py.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.parts.known_commands import unknown

PROJECT = Path(__file__).parents[2]
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<'END'\n.*?^END$", re.MULTILINE | re.DOTALL)
_TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))


def commands(page: Path) -> list[list[str]]:
    """The words of each command in the page's shell blocks; of a pipe, each part is one."""
    found = []
    for block in _BLOCK.findall(page.read_text()):
        text = _HERE_DOCUMENT.sub("", block.replace("\\\n", " "))
        for line in text.splitlines():
            words: list[str] = []
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>(){}")
            lexer.whitespace_split = True
            for word in [*lexer, ";"]:
                if set(word) <= set("|&;(){}"):
                    found.append(words)
                    words = []
                else:
                    words.append(word)
    return [words for words in found if words]


def asked_of(program: str) -> list[tuple[str, list[str]]]:
    """The words behind a program's name, with their page."""
    return [
        (page.name, words[words.index(program) + 1 :])
        for page in PAGES
        for words in commands(page)
        if program in words[:2]  # `until headwater …`
    ]


def test_commands_and_their_options_exist() -> None:
    asked = asked_of("headwater")
    assert len(asked) > 40
    assert [f"{page}: {' '.join(words)}" for page, words in asked if unknown(words)] == []


def test_targets_of_make_exist() -> None:
    asked = asked_of("make")
    assert len(asked) > 20
    assert [f"{page}: make {words[0]}" for page, words in asked if words and words[0] not in _TARGETS] == []


@pytest.mark.parametrize("words", [["flee"], ["run", "job.py", "--fast"], ["savepoint", "grab"]])
def test_what_does_not_exist_is_found(words: list[str]) -> None:
    assert unknown(words)
