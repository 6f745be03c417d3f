"""Where statements end: at semicolons that stand neither in quotes nor in comments."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | --[^\n]* | /\*.*?\*/  # quoted, or a comment
    | ['"`].*\Z | /\*.*\Z  # one that has no end yet
    | ; | [^'"`;/-]+ | .""",
    re.DOTALL | re.VERBOSE,
)


def split(text: str) -> tuple[list[str], str]:
    """The statements that are complete, and what is left behind them."""
    statements, begun, at = [], "", 0
    for piece in _PIECE.finditer(text):
        if piece[0] == ";":
            statements.append(begun)
            begun, at = "", piece.end()
        else:
            begun += piece[0]
    return [one for one in map(str.strip, statements) if one], text[at:]
