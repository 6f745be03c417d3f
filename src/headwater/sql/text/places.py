"""Where something stands in a text, and how that is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

_WIDEST = 100
"""Characters of a line that are shown."""


@dataclass(frozen=True)
class Place:
    """A part of a text: from a character to another, both included."""

    text: str
    start: int
    end: int

    @classmethod
    def of(cls, text: str, tree: exp.Expr) -> Place | None:
        """Where a tree was read from: from the first of its words to the last."""
        found = [node.meta for node in tree.walk() if "start" in node.meta]
        if not found:
            return None
        return cls(text, min(meta["start"] for meta in found), max(meta["end"] for meta in found))

    @property
    def line(self) -> int:
        """Counted from 1."""
        return self.text.count("\n", 0, self.start) + 1

    @property
    def column(self) -> int:
        """Counted from 1."""
        return self.start - self._line_start + 1

    @property
    def _line_start(self) -> int:
        return self.text.rfind("\n", 0, self.start) + 1

    def shown(self) -> str:
        """The line, and below it what is meant."""
        end = self.text.find("\n", self.start)
        line = self.text[self._line_start : end if end >= 0 else len(self.text)]
        first = self.column - 1
        skipped = max(0, first - _WIDEST // 2)
        line = line[skipped : skipped + _WIDEST].replace("\t", " ")
        marks = max(1, min(self.end - self.start + 1, len(line) - (first - skipped)))
        return f"  {line}\n  {' ' * (first - skipped)}{'^' * marks}"
