"""Shell blocks of the documents: every command of ours in them exists, with its options, and every target of make.

The tutorial's are run as they are, by tests/examples/test_tutorial.py, and those of other pages by
tests/examples/test_shell_blocks.py, but for blocks that say why not.
"""

from __future__ import annotations

import re

import pytest
from tests.parts.known_commands import unknown
from tests.parts.shell_blocks import PAGES, PROJECT, shell_blocks

_TARGETS = set(re.findall(r"^([a-z-]+):", (PROJECT / "Makefile").read_text(), re.MULTILINE))


def asked_of(program: str) -> list[tuple[str, list[str]]]:
    """The words behind a program's name, with their page."""
    return [
        (page.name, words[words.index(program) + 1 :])
        for page in PAGES
        for block in shell_blocks(page)
        for words in block.commands
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
