"""The client: statements in, their results out; each INSERT is a job of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headwater as hw
from headwater.cli.output import show_json_line, show_table, show_text
from headwater.cli.sql.result import show_result
from headwater.eventlog import EventLog

_COMMENTS = re.compile(r"\s*(?:--[^\n]*\n?|/\*.*?\*/)", re.DOTALL)
_DECLARES = ("CREATE", "DROP", "SET", "RESET")
_QUERIES = ("SELECT", "WITH", "VALUES", "(")
_INSERTS = ("INSERT", "EXECUTE")
_LINES = (["statement"], ["plan"])
"""What has one column of text is shown as text."""

Environments = Callable[[], hw.Environment]


class Client:
    """One user's session: the tables that are there, and what was declared, which jobs get too."""

    def __init__(self, environment: Environments, log: Path | None, *, limit: int, as_json: bool) -> None:
        self._environment, self._log = environment, log
        self._limit, self._as_json = limit, as_json
        self._declared: list[str] = []
        self._env = self._new()

    def names(self) -> list[str]:
        """Tables and views."""
        return [str(row[0]) for kind in ("TABLES", "VIEWS") for row in self._env.execute_sql(f"SHOW {kind}")]

    def run(self, statement: str) -> None:
        """Run one statement and show what it gives."""
        word = _first_word(statement)
        if word.startswith(_QUERIES):
            show_result(self._env.sql(statement), limit=self._limit, as_json=self._as_json)
        elif word in _INSERTS:
            job = self._new(self._declared).run_sql(statement)
            if not self._as_json and job is not None:
                show_text(f"the job {job.status().state}")
        else:
            self._show(self._env.execute_sql(statement))
            if word in _DECLARES:
                self._declared.append(statement)

    def _new(self, declared: list[str] | None = None) -> hw.Environment:
        """An environment with the topics of the event log as tables, and with what was declared."""
        env = self._environment()
        if self._log is not None:
            there = EventLog(self._log)
            for name in there.topics():
                env.create_table(name, hw.connectors.log(self._log, name), hw.Schema.of(there.topic(name).schema))
        for statement in declared or ():
            env.execute_sql(statement)
        return env

    def _show(self, rows: list[Any]) -> None:
        if self._as_json:
            for row in rows:
                show_json_line(row._asdict())
        elif rows and list(rows[0]._fields) in _LINES:
            show_text("\n".join(str(row[0]) for row in rows))
        elif rows:
            show_table(rows[0]._fields, rows)


def _first_word(statement: str) -> str:
    """What a statement begins with, behind comments."""
    while found := _COMMENTS.match(statement):
        statement = statement[found.end() :]
    word = re.match(r"\s*(\w+|\()", statement)
    return "" if word is None else word[1].upper()
