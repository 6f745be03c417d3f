"""The prompt: several lines to a statement, a history that outlives the session, completion by Tab."""

from __future__ import annotations

import os
import readline
from collections.abc import Callable, Iterator
from pathlib import Path

from headwater.cli.output import show_text
from headwater.cli.sql.splitting import split

_PROMPT, _GOES_ON = "sql> ", "...> "
_HISTORY = 1000
_WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "HAVING",
    "ORDER",
    "LIMIT",
    "JOIN",
    "LEFT",
    "RIGHT",
    "FULL",
    "OUTER",
    "INNER",
    "ON",
    "USING",
    "UNION",
    "ALL",
    "INTERSECT",
    "EXCEPT",
    "DISTINCT",
    "AS",
    "WITH",
    "VALUES",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "AND",
    "OR",
    "NOT",
    "IN",
    "EXISTS",
    "IS",
    "NULL",
    "BETWEEN",
    "LIKE",
    "CAST",
    "OVER",
    "PARTITION",
    "ROWS",
    "RANGE",
    "PRECEDING",
    "TUMBLE",
    "HOP",
    "CUMULATE",
    "SESSION",
    "TABLE",
    "DESCRIPTOR",
    "INTERVAL",
    "FOR",
    "SYSTEM_TIME",
    "OF",
    "CREATE",
    "TEMPORARY",
    "VIEW",
    "DROP",
    "INSERT",
    "INTO",
    "EXECUTE",
    "STATEMENT",
    "SET",
    "BEGIN",
    "SHOW",
    "TABLES",
    "VIEWS",
    "DESCRIBE",
    "EXPLAIN",
    "STATE",
    "CHANGELOG_MODE",
    "WATERMARK",
    "PRIMARY",
    "KEY",
    "ENFORCED",
    "METADATA",
    "RESET",
    "COUNT",
    "SUM",
    "AVG",
    "MIN",
    "MAX",
]
_LEAVES = ("exit", "quit", "exit;", "quit;")


def statements_of(names: Callable[[], list[str]]) -> Iterator[str]:
    """The statements that a user types, each when its semicolon has come. Ctrl-C forgets what was typed, Ctrl-D leaves."""
    file = _history_file()
    _prepare(file, names)
    text = ""
    while True:
        try:
            line = input(_GOES_ON if text.strip() else _PROMPT)
        except KeyboardInterrupt:
            text = ""
            show_text("")
            continue
        except EOFError:
            show_text("")
            return
        if not text.strip() and line.strip().lower() in _LEAVES:
            return
        statements, text = split(f"{text}{line}\n")
        if statements:
            readline.set_history_length(_HISTORY)
            readline.write_history_file(file)
        yield from statements


def _prepare(file: Path, names: Callable[[], list[str]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.exists():
        readline.read_history_file(file)
    else:
        file.touch(mode=0o600)  # statements may hold secrets
    readline.set_completer(lambda begun, at: completion(begun, at, names))
    readline.set_completer_delims(" \t\n,()=<>;.'\"")
    readline.parse_and_bind("tab: complete")


def completion(begun: str, at: int, names: Callable[[], list[str]]) -> str | None:
    """One of the words, tables and views that begin so, by number."""
    found = [name for name in names() if name.startswith(begun)]
    found += [f"{word} " for word in _WORDS if begun and word.startswith(begun.upper())]
    return found[at] if at < len(found) else None


def _history_file() -> Path:
    folder = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(folder) / "headwater" / "sql_history"
