"""The client for SQL, as a user types at it."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import sys
import time
from pathlib import Path

import pytest
from tests.unit.cli.test_commands import run, said

import headwater as hw
from headwater.cli.sql.prompt import completion
from headwater.cli.sql.splitting import split

NUMBERS = """CREATE TABLE numbers (n INT) WITH ('connector' = 'generator', 'number-of-rows' = '{}',
    'fields.n.kind' = 'sequence', 'fields.n.start' = '1')"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    topic = hw.EventLog(tmp_path / "log").create_topic("orders", "user string, amount double")
    topic.append([("ann", 1.0), ("bob", 2.0), ("ann", 3.5)])
    return tmp_path / "log"


@pytest.mark.parametrize(
    ("text", "statements", "rest"),
    [
        ("SELECT 1; SELECT 2", ["SELECT 1"], " SELECT 2"),
        (
            "SELECT ';' AS \";\"; -- a; b\n SELECT /* ; */ `;` ;",
            ["SELECT ';' AS \";\"", "-- a; b\n SELECT /* ; */ `;`"],
            "",
        ),
        ("SELECT 'it''s; fine';;\n", ["SELECT 'it''s; fine'"], "\n"),
        ("SELECT 'open; ", [], "SELECT 'open; "),
    ],
)
def test_statements_end_at_semicolons_that_are_not_quoted(text: str, statements: list[str], rest: str) -> None:
    found, left = split(text)
    assert found == statements
    assert left == rest or (not statements and left)


def test_a_query_over_a_bounded_table_shows_its_rows() -> None:
    text = said(
        "sql", "-e", NUMBERS.format(6), "-e", "SELECT n % 2 AS odd, SUM(n) AS total FROM numbers GROUP BY n % 2"
    )
    head, *rows, count = [line.split() for line in text.splitlines()]
    assert (head, sorted(rows), count) == (["odd", "total"], [["0", "12"], ["1", "9"]], ["2", "rows"])


def test_changes_are_lines_of_json() -> None:
    query = "SELECT MAX(n) AS largest FROM numbers"
    lines = said("sql", "-e", NUMBERS.format(2), "-e", query, "--json").splitlines()
    assert [json.loads(line) for line in lines] == [{"largest": 2, "row_kind": "+I"}]


def test_a_script_declares_shows_and_inserts(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = tmp_path / "script.sql"
    script.write_text(
        f"{NUMBERS.format(3)};\n"
        f"CREATE TABLE squares (square INT) WITH ('connector' = 'files', 'path' = '{out}', 'format' = 'json');\n"
        "SHOW TABLES;\nDESCRIBE squares;\nINSERT INTO squares SELECT n * n FROM numbers;\n"
    )
    text = said("sql", "-f", script)
    assert "numbers" in text
    assert "square" in text
    assert text.endswith("the job finished\n")
    written = [file for file in out.rglob("*.json*") if "_headwater" not in file.parts]
    rows = [json.loads(line) for file in written for line in file.read_text().splitlines()]
    assert sorted(row["square"] for row in rows) == [1, 4, 9]


def test_a_mistake_shows_its_place_and_ends_a_script(tmp_path: Path) -> None:
    with pytest.raises(hw.SqlError, match="line 1, column 8"):
        run("sql", "-e", NUMBERS.format(1), "-e", "SELECT m FROM numbers", "-e", "SELECT n FROM numbers")


def test_tab_offers_words_tables_and_views() -> None:
    offered = [completion("se", at, lambda: ["sessions", "orders"]) for at in range(4)]
    assert offered == ["sessions", "SELECT ", "SESSION ", "SET "]
    assert completion("", 0, lambda: ["orders"]) == "orders"


class Terminal:
    """The client in a terminal of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            os.environ.update(XDG_STATE_HOME=str(folder), TERM="xterm", COLUMNS="100", LINES="30")
            os.execv(sys.executable, [sys.executable, "-m", "headwater.cli", "sql", *arguments])
        self.said = ""

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())

    def until(self, words: str, after: int = 0) -> int:
        """Wait for words; gives where they end."""
        deadline = time.monotonic() + 120
        while (at := self.said.find(words, after)) < 0:
            if not select.select([self._end], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"{words!r} is not in {self.said[after:]!r}")
            try:
                self.said += os.read(self._end, 65536).decode(errors="replace")
            except OSError as error:
                raise AssertionError(f"the client has ended: {self.said}") from error
        return at + len(words)

    def ends(self) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def close(self) -> None:
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def test_a_session_at_the_prompt(log: Path, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "--log", str(log))
    try:
        at = terminal.until("sql> ")
        terminal.type("SELECT user,\n")
        at = terminal.until("...> ", at)
        terminal.type("nothing FROM orders;\n")
        at = terminal.until("'nothing'", at)
        at = terminal.until("sql> ", at)
        terminal.type("SELECT `user`, SUM(amount) AS spent FROM orders GROUP BY `user`;\n")
        at = terminal.until("4.5", at)
        hw.EventLog(log).topic("orders").append([("ann", 10.0)])
        at = terminal.until("14.5", at)
        terminal.type("\x03")
        at = terminal.until("sql> ", at)
        terminal.type("SHOW TABLES;\n")
        at = terminal.until("orders", at)
        at = terminal.until("sql> ", at)
        terminal.type("exit\n")
        assert terminal.ends() == 0
    finally:
        terminal.close()
    assert "GROUP BY" in (tmp_path / "headwater" / "sql_history").read_text()


def test_what_is_no_statement_is_told() -> None:
    with pytest.raises(hw.SqlError):
        run("sql", "-e", "FLY TO THE MOON")
    assert said("sql", text=f"{NUMBERS.format(1)}; SELECT n FROM numbers;").splitlines()[1].strip() == "1"
