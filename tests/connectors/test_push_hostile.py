"""Requests made to do harm, over sockets, to a real server: refused one by one, and others are served meanwhile."""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import headwater as hw
from headwater.push import PushServer, serve

LIMIT_S = 30
SCHEMA = "id long, price decimal(38,2), weight double, name string, inside struct<a: long>, marks map<string, long>"
PLAIN = "id long, price decimal(38,2), weight double, name string, inside struct<a: long>"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("push") / "log"
    hw.EventLog(found).create_topic("all", SCHEMA, partitions=3)
    hw.EventLog(found).create_topic("plain", PLAIN)
    return found


@pytest.fixture(scope="module")
def server(log: Path) -> Iterator[PushServer]:
    with serve(log, token="tökén") as running:
        yield running


def connected(server: PushServer) -> socket.socket:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return socket.create_connection((host, int(port)), LIMIT_S)


def head(server: PushServer, line: str = "POST /topics/all HTTP/1.1", *headers: str) -> bytes:
    lines = [line, "Host: here", f"Authorization: Bearer {server.token}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


def answer(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the next answer; 0 if there is none."""
    with connection.makefile("rb") as stream:
        status = stream.readline()
        if not status:
            return 0, {}, b""
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        return int(status.split()[1]), headers, stream.read(int(headers.get("content-length", 0)))


def told(server: PushServer, sent: bytes) -> tuple[int, dict[str, Any]]:
    with closing(connected(server)) as connection:
        connection.sendall(sent)
        status, _, body = answer(connection)
        return status, json.loads(body) if body else {}


def posted(server: PushServer, body: bytes, *headers: str, path: str = "all") -> tuple[int, dict[str, Any]]:
    line = f"POST /topics/{path} HTTP/1.1"
    return told(server, head(server, line, f"Content-Length: {len(body)}", *headers) + body)


def rows_of(log: Path, topic: str) -> list[dict[str, Any]]:
    found = hw.EventLog(log).topic(topic)
    return [row for p in range(found.partitions) for batch in found.read(p, 0) for row in batch.to_pylist()]


@pytest.mark.parametrize("topic", ["all", "plain"])
@pytest.mark.parametrize("form", ["one", "array", "lines"])
def test_numbers_arrive_digit_by_digit(server: PushServer, log: Path, topic: str, form: str) -> None:
    text = (
        b'{"id": 9007199254740993, "price": 123456789012345678901234567890123456.78, "weight": 0.1, "inside": {"a": '
        b"-9223372036854775808}}"
    )
    body = {"one": text, "array": b" [\n" + text + b" , " + text + b"]\n", "lines": text + b"\r\n\r\n" + text}[form]
    before = len(rows_of(log, topic))
    kind = "application/x-ndjson" if form == "lines" else "application/json"
    assert posted(server, body, f"Content-Type: {kind}", path=topic)[0] == 200
    found = rows_of(log, topic)[before:]
    assert len(found) == (1 if form == "one" else 2)
    for row in found:
        assert (row["id"], row["price"]) == (9007199254740993, Decimal("123456789012345678901234567890123456.78"))
        assert (row["weight"], row["inside"]["a"]) == (0.1, -(2**63))


DEEP = b"[" * 50_000 + b"]" * 50_000
BODIES = {
    "a decimal with too many places": b'{"price": 0.125}',
    "a decimal far below": b'{"price": 1e-99999999}',
    "a decimal far below, as text": b'{"price": "1e-99999999"}',
    "a decimal far below, in disguise": b'{"price": "1\\u0065-99999999"}',
    "a decimal of many places": b'{"price": 0.' + b"0" * 90 + b"1}",
    "a decimal far above": b'{"price": 1e400}',
    "a decimal that is true": b'{"price": true}',
    "a whole number of 65 bits": b'{"id": 9223372036854775808}',
    "a whole number with a point": b'{"id": 1.0}',
    "a whole number of 400 digits": b'{"weight": 1' + b"0" * 400 + b"}",
    "a whole number of 9,000 digits": b'{"id": 1' + b"0" * 9_000 + b"}",
    "a number beyond a double": b'{"weight": -1e999}',
    "NaN": b'{"weight": NaN}',
    "Infinity": b'{"weight": -Infinity}',
    "a member twice": b'{"id": 1, "id": 2}',
    "a member twice inside": b'{"inside": {"a": 1, "a": 2}}',
    "not UTF-8": b'{"name": "\xff\xfe"}',
    "UTF-16": '{"id": 1}'.encode("utf-16"),
    "half of a pair": b'{"name": "\\ud800"}',
    "half of a pair as a member": b'{"\\ud800": 1}',
    "deep brackets": DEEP,
    "deep brackets in a row": b'{"inside": ' + DEEP + b"}",
    "deep objects in a row": b'{"inside": ' + b'{"b":' * 500 + b"1" + b"}" * 501,
    "many columns": b"{" + b",".join(b'"c%d": 1' % n for n in range(100_000)) + b"}",
    "two values": b'{"id": 1} {"id": 2}',
    "an array that goes on": b'[{"id": 1}] []',
    "an array with a comma": b'[{"id": 1},]',
    "an array without a comma": b'[{"id": 1} {"id": 2}]',
    "nothing": b"",
    "a bracket": b"[",
}


@pytest.mark.parametrize("topic", ["all", "plain"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_no_row_is_refused_with_a_short_reason(server: PushServer, log: Path, topic: str, body: bytes) -> None:
    before = rows_of(log, topic)
    status, said = posted(server, body, path=topic)
    assert (status, list(said)) == (400, ["error"])
    assert len(said["error"]) < 1_100
    assert rows_of(log, topic) == before


HEADERS = {
    "a packed body": (["Content-Encoding: gzip"], 415),
    "two types": (["Content-Type: application/json", "Content-Type: text/csv"], 400),
    "two tokens": (["Authorization: Bearer other"], 401),
    "two lengths": (["Content-Length: 3"], 400),
    "a length and chunks": (["Transfer-Encoding: chunked"], 400),
    "another transfer": (["Transfer-Encoding: gzip, chunked"], 400),
    "a header without end": (["X-Long: " + "x" * 200_000], 400),
    "a header on two lines": (["X-Fold: a\r\n b: c\r\nX Y: 1"], 400),
}


@pytest.mark.parametrize(("headers", "status"), HEADERS.values(), ids=HEADERS)
def test_headers_that_can_be_read_in_two_ways_are_refused(
    server: PushServer, log: Path, headers: list[str], status: int
) -> None:
    before = rows_of(log, "all")
    assert posted(server, gzip.compress(b" " * 1_000_000), *headers)[0] == status
    assert rows_of(log, "all") == before


CHUNKS = {
    "no number": b"zz\r\n{}\r\n0\r\n\r\n",
    "a number without end": b"f" * 40 + b"\r\n",
    "less than it says": b"2\r\n{}}}}}}\r\n0\r\n\r\n",
    "a negative number": b"-2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("sent", CHUNKS.values(), ids=CHUNKS)
def test_chunks_that_lie_are_refused(server: PushServer, log: Path, sent: bytes) -> None:
    before = rows_of(log, "all")
    start = head(server, "POST /topics/all HTTP/1.1", "Transfer-Encoding: chunked")
    assert told(server, start + sent)[0] == 400
    assert rows_of(log, "all") == before


def test_chunks_that_do_not_lie_are_rows(server: PushServer) -> None:
    start = head(server, "POST /topics/all HTTP/1.1", "Transfer-Encoding: chunked")
    assert told(server, start + b"3\r\n{} \r\n0\r\n\r\n")[0] == 200


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /topics HTTP/1.0", 200),
        ("HEAD /topics HTTP/1.1", 200),
        ("OPTIONS /topics/all HTTP/1.1", 405),
        ("DELETE /topics/all HTTP/1.1", 405),
        ("GET /topics/ HTTP/1.1", 404),
        ("GET /topics/all/ HTTP/1.1", 404),
        ("POST /topics/..%2f..%2fetc HTTP/1.1", 404),
        ("POST /topics/%2e%2e HTTP/1.1", 404),
        ("POST /topics/%00 HTTP/1.1", 404),
        ("POST /topics/.push-token HTTP/1.1", 404),
        ("POST /topics/all%0a HTTP/1.1", 404),
        ("POST http://elsewhere.example/topics/all HTTP/1.1", 404),
        ("POST /topics/all?key=id&key=name HTTP/1.1", 400),
        ("hello", 400),
    ],
)
def test_nothing_that_is_asked_for_is_believed_or_echoed(server: PushServer, line: str, status: int) -> None:
    with closing(connected(server)) as connection:
        connection.sendall(head(server, line, "Connection: close").replace(b"Host: here", b"Host: evil.example"))
        everything = b"".join(iter(lambda: connection.recv(65536), b""))
    assert int(everything.split()[1]) == status
    assert b"evil.example" not in everything
    assert b"uvicorn" not in everything.lower()
    if line.startswith("HEAD"):
        assert everything.endswith(b"\r\n\r\n")


def test_who_sends_nothing_or_slowly_is_sent_away_and_others_are_served(log: Path) -> None:
    with serve(log, header_timeout="3 s", body_timeout="1 s", max_waiting=1) as server:
        slow = {
            "nothing": b"",
            "a header": b"POST /topics/all HTTP/1.1\r\nHost: a\r\nX-Drip: ",
            "a body": head(server, "POST /topics/all HTTP/1.1", "Content-Length: 50") + b'{"id": ',
            "chunks": head(server, "POST /topics/all HTTP/1.1", "Transfer-Encoding: chunked") + b"5\r\n{",
            "a body without a token": b"POST /topics/all HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n{",
        }
        with ExitStack() as opened:
            waiting = [(why, opened.enter_context(closing(connected(server)))) for why in slow for _ in range(4)]
            for why, connection in waiting:
                connection.sendall(slow[why])
            assert posted(server, b'{"id": 1}')[0] == 200, "slow requests take nobody's place"
            statuses = {(why, answer(connection)[0]) for why, connection in waiting}
            assert statuses == {(why, 401 if "token" in why else 408) for why in slow}
            for _, connection in waiting:
                assert connection.recv(1) == b"", "and the connection is closed"


def test_a_body_that_drips_for_ever_ends(log: Path) -> None:
    with serve(log, body_timeout="300 ms") as server, closing(connected(server)) as connection:
        connection.sendall(head(server, "POST /topics/all HTTP/1.1", "Content-Length: 5000000"))
        status = 0
        connection.settimeout(0.01)
        while not status:
            connection.sendall(b" ")
            try:
                status, _, _ = answer(connection)
            except TimeoutError:
                continue
        assert status == 408


def test_of_too_many_connections_those_go_that_owe_a_request_for_longest(log: Path) -> None:
    with serve(log, max_connections=4) as server, ExitStack() as opened:
        working = opened.enter_context(closing(connected(server)))
        working.sendall(head(server, "POST /topics/all HTTP/1.1", "Content-Length: 9", "Expect: 100-continue"))
        assert answer(working)[0] == 100, "its request is at work"
        idle = [opened.enter_context(closing(connected(server))) for _ in range(12)]
        assert posted(server, b'{"id": 1}')[0] == 200
        assert answer(idle[0])[0] == 408
        working.sendall(b'{"id": 7}')
        assert answer(working)[0] == 200


def test_when_every_connection_has_a_request_the_next_is_told_to_come_again(log: Path) -> None:
    with serve(log, max_connections=2) as server, ExitStack() as opened:
        start = head(server, "POST /topics/all HTTP/1.1", "Content-Length: 9", "Expect: 100-continue")
        working = [opened.enter_context(closing(connected(server))) for _ in range(2)]
        for connection in working:
            connection.sendall(start)
            assert answer(connection)[0] == 100, "its request is at work"
        with closing(connected(server)) as late:
            assert answer(late)[0] == 503
        for connection in working:
            connection.sendall(b'{"id": 2}')
            assert answer(connection)[0] == 200


def test_all_bodies_together_have_a_bound_and_slow_ones_make_room(log: Path) -> None:
    with serve(log, max_body_bytes=60_000, max_bytes_in_flight=100_000) as server, ExitStack() as opened:
        start = head(server, "POST /topics/all HTTP/1.1", "Content-Length: 50009", "Expect: 100-continue")
        holding = [opened.enter_context(closing(connected(server))) for _ in range(2)]
        for connection in holding:
            connection.sendall(start)
            assert answer(connection)[0] == 100
            connection.sendall(b" " * 50_000)
        statuses = []
        while not statuses or statuses[-1] == 429:
            statuses.append(posted(server, b'{"id": 3}' + b" " * 40_000)[0])
        assert statuses[-1] == 200, "as soon as the slowest has been given up"
        gone, kept = holding
        assert answer(gone)[0] == 408
        kept.sendall(b'{"id": 4}')
        assert answer(kept)[0] == 200


def test_a_server_that_is_told_to_end_does_not_wait_for_slow_bodies(log: Path) -> None:
    with serve(log, body_timeout="1 h") as server:
        slow = connected(server)
        slow.sendall(head(server, "POST /topics/all HTTP/1.1", "Content-Length: 50", "Expect: 100-continue"))
        assert answer(slow)[0] == 100
    with closing(slow):
        assert slow.recv(1) == b""


def test_an_answer_that_nobody_takes_is_given_up(tmp_path: Path) -> None:
    answer_bytes = 16_000_000  # more than the sockets hold
    hw.EventLog(tmp_path).create_topic("wide", pa.schema([("c" * answer_bytes, pa.int64())]))
    with serve(tmp_path, body_timeout="300 ms", max_connections=1) as server, closing(connected(server)) as deaf:
        deaf.sendall(head(server, "GET /topics HTTP/1.1"))
        taken = len(deaf.recv(1))
        status = 503
        while status == 503:
            status, _ = told(server, head(server, "GET /topics/none HTTP/1.1"))
        assert status == 405, "its place is free"
        with suppress(ConnectionError):
            while got := len(deaf.recv(1 << 20)):
                taken += got
    assert 0 < taken < answer_bytes


def test_a_damaged_topic_is_told_and_the_others_are_served(tmp_path: Path) -> None:
    for name in ("good", "bad", "worse"):
        topic = hw.EventLog(tmp_path).create_topic(name, "n long")
        topic.append([{"n": 1}])
        topic.flush()
    (tmp_path / "bad" / "partition-0" / f"{0:020d}.segment").write_bytes(b"")
    (tmp_path / "worse" / "topic.json").write_text("{}")
    with serve(tmp_path) as server:
        status, said = told(server, head(server, "GET /topics HTTP/1.1"))
        assert (status, said["topics"]["good"]["end"]) == (200, {"0": 1})
        assert "had been flushed" in said["topics"]["bad"]["error"]
        assert "must describe a topic" in said["topics"]["worse"]["error"]
        assert posted(server, b'{"n": 2}', path="good")[0] == 200
        for path in ("bad", "bad?key=n"):
            status, said = posted(server, b'[{"n": 2}, {"n": 3}]', path=path)
            assert (status, said["appended"], said["missing"]) == (500, 0, [1, 2])
        assert posted(server, b'{"n": 2}', path="worse")[0] == 500


LIMITED = """
import resource, sys
from headwater.cli.app import app
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
app(["push", *sys.argv[2:]])
"""


def test_a_full_disk_answers_which_rows_are_in_the_log(tmp_path: Path) -> None:
    """A limit on the size of files refuses what comes after it, as a full disk does."""
    topic = hw.EventLog(tmp_path).create_topic("orders", "user string, n long", partitions=3)
    topic.append([{"user": "x" * 100, "n": n} for n in range(600)], partition=1)
    full = max(file.stat().st_size for file in tmp_path.rglob("*.segment")) + 4_000
    (tmp_path / ".push-token").write_text("  a-token\n\n")
    program = subprocess.Popen(
        [sys.executable, "-c", LIMITED, str(full), str(tmp_path), "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert program.stdout is not None
        url = re.findall(r"http://[^/]+", "".join(program.stdout.readline() for _ in range(3)))[0]
        server = PushServer(url, "a-token")
        rows = [{"user": f"u{n % 20}-{'y' * 60}", "n": n} for n in range(200)]
        status, said = posted(server, json.dumps(rows).encode(), path="orders?key=user")
    finally:
        program.terminate()
        program.wait(LIMIT_S)
        if program.stdout is not None:
            program.stdout.close()
    assert status == 507
    found = hw.EventLog(tmp_path).topic("orders")
    in_log = {p: [row["n"] for batch in found.read(p, 0) for row in batch.to_pylist()] for p in range(3)}
    in_log[1] = in_log[1][600:]
    assert in_log[1] == []
    assert said["missing"]
    assert said["missing"] == sorted({*range(1, 201)} - {n + 1 for ns in in_log.values() for n in ns})
    assert said["appended"] == 200 - len(said["missing"]) == sum(map(len, in_log.values())) > 0
    assert {int(p): end - start for p, (start, end) in said["offsets"].items()} == {
        p: len(ns) for p, ns in in_log.items() if ns
    }
    assert said["durable"] is True


def test_a_token_file_with_nothing_in_it_is_not_a_token(tmp_path: Path) -> None:
    (tmp_path / ".push-token").write_text(" \n")
    done = subprocess.run(
        [sys.executable, "-m", "headwater.cli", "push", str(tmp_path), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        env={**os.environ, "HEADWATER_PUSH_TOKEN": "\n"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "has no token in it; remove it" in done.stderr
