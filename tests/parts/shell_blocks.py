"""The shell blocks of the documents, and their commands."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGES = sorted([*PROJECT.glob("*.md"), *(PROJECT / "docs").rglob("*.md")])
_BLOCK = re.compile(r"^```sh(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<'END'\n.*?^END$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ShellBlock:
    """A block marked ```sh, or ```sh no-run: and why it is not run."""

    page: str
    line: int
    info: str
    body: str

    @property
    def reason(self) -> str | None:
        """Why it is not run; None when it is."""
        marked = re.fullmatch(r" no-run: *(.*)", self.info)
        return marked and marked[1]

    @property
    def commands(self) -> list[list[str]]:
        """The words of each command; of a pipe, each part is one."""
        found = []
        text = _HERE_DOCUMENT.sub("", self.body.replace("\\\n", " "))
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


def shell_blocks(page: Path) -> list[ShellBlock]:
    """Those of a page, in their order."""
    text = page.read_text()
    name = str(page.relative_to(PROJECT))
    return [
        ShellBlock(name, text.count("\n", 0, found.start()) + 1, found["info"], found["body"])
        for found in _BLOCK.finditer(text)
    ]
