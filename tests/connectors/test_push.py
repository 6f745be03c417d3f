"""Rows pushed over HTTP to a real server, and read by a job."""

from __future__ import annotations

import concurrent.futures
import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headwater as hw
from headwater.push import PushServer, serve

SCHEMA = "user string, amount double, at timestamp"
LIMIT_S = 30


@pytest.fixture
def log(tmp_path: Path) -> Path:
    hw.EventLog(tmp_path / "log").create_topic("orders", SCHEMA, partitions=3)
    return tmp_path / "log"


@pytest.fixture
def server(log: Path) -> Iterator[PushServer]:
    with serve(log, max_body_bytes=100_000) as running:
        yield running


def ask(url: str, token: str | None, body: Any = None, kind: str = "application/json") -> tuple[int, dict[str, Any]]:
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": kind, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=LIMIT_S) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def rows_of(log: Path) -> list[Any]:
    env = hw.Environment("read", engine="local")
    sink = hw.connectors.memory()
    env.source(hw.connectors.log(log, "orders"), SCHEMA).sink(sink)
    env.run(bounded=True)
    return sorted((row.user, row.amount) for row in sink.rows)


ROW = {"user": "ann", "amount": 1.5, "at": "2026-01-01T12:00:00Z"}


def test_an_object_an_array_and_lines_are_rows(server: PushServer, log: Path) -> None:
    url = f"{server.url}/topics/orders"
    assert ask(url, server.token, ROW) == (200, {"appended": 1, "offsets": {"0": [0, 1]}})
    assert ask(url, server.token, [ROW, {**ROW, "user": "bob"}])[1]["offsets"] == {"0": [1, 3]}
    lines = b"\n".join(json.dumps({**ROW, "user": f"u{i}"}).encode() for i in range(5))
    status, said = ask(f"{url}?key=user", server.token, lines, "application/x-ndjson")
    assert (status, said["appended"]) == (200, 5)
    assert len(said["offsets"]) > 1
    assert rows_of(log) == [("ann", 1.5), ("ann", 1.5), ("bob", 1.5), *((f"u{i}", 1.5) for i in range(5))]
    _, listed = ask(f"{server.url}/topics", server.token)
    assert sum(listed["topics"]["orders"]["end"].values()) == 8
    assert "user string" in listed["topics"]["orders"]["schema"].lower()


@pytest.mark.parametrize(
    ("request_", "status", "why"),
    [
        (("orders", b"{"), 400, "not JSON"),
        (("orders", [ROW, 7]), 400, "row 2 is not an object"),
        (("orders", [ROW, {**ROW, "amount": "much"}]), 400, "row 2 does not fit"),
        (("orders", [{**ROW, "amuont": 1}]), 400, "row 1 has amuont"),
        (("orders", b'{"user": "ann"}\nhello', "application/x-ndjson"), 400, "row 2 is not JSON"),
        (("orders", b"a,b", "text/csv"), 415, "application/json"),
        (("orders", [ROW] * 2_000), 413, "100,000 bytes"),
        (("orders?key=nobody", [ROW]), 400, "nobody"),
        (("payments", [ROW]), 404, "orders"),
        (("..", [ROW]), 404, "name"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_kept(
    server: PushServer, log: Path, request_: tuple[Any, ...], status: int, why: str
) -> None:
    path, *body = request_
    found, said = ask(f"{server.url}/topics/{path}", server.token, *body)
    assert (found, why in said["error"]) == (status, True), said
    assert rows_of(log) == []


@pytest.mark.parametrize("token", [None, "", "wrong"])
def test_without_the_token_nothing_is_done_or_shown(server: PushServer, log: Path, token: str | None) -> None:
    for path, body in (("topics/orders", ROW), ("topics", None)):
        status, said = ask(f"{server.url}/{path}", token, body)
        assert (status, list(said)) == (401, ["error"])
        assert server.token not in said["error"]
    assert server.token not in repr(server)
    assert rows_of(log) == []


def test_senders_that_come_too_fast_are_told_to_come_again(log: Path) -> None:
    with serve(log, max_waiting=1) as server, concurrent.futures.ThreadPoolExecutor(8) as senders:
        body = [ROW] * 2_000
        answers = list(senders.map(lambda _: ask(f"{server.url}/topics/orders", server.token, body), range(40)))
    taken = [said for status, said in answers if status == 200]
    assert {status for status, _ in answers} <= {200, 429}
    assert taken
    assert len(rows_of(log)) == 2_000 * len(taken)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_prints_a_command_that_works_and_ends_when_told(number: signal.Signals, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "headwater.cli", "push", str(tmp_path / "log"), "--port", str(port)]
    program = subprocess.Popen(
        [*command, "--create", f"orders={SCHEMA}"], stdout=subprocess.PIPE, text=True, env={**os.environ}
    )
    try:
        assert program.stdout is not None
        said = "".join(program.stdout.readline() for _ in range(3))
        file = Path(re.findall(r"\$\(cat (.*?)\)", said)[0])
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.read_text() not in said
        url = re.findall(r"http://\S+", said)[0]
        assert ask(url, file.read_text(), ROW)[0] == 200
        assert rows_of(tmp_path / "log") == [("ann", 1.5)]
    finally:
        program.send_signal(number)
        code = program.wait(LIMIT_S)
        if program.stdout is not None:
            program.stdout.close()
    assert code == 0
