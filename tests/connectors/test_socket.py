"""Lines from a real TCP server: none doubled, none lost while both ends live, and clear words when one does not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import headwater as hw

LIMIT_S = 30


class Speaker:
    """A TCP server that sends to whoever is connected."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(LIMIT_S)
        self.port = self._server.getsockname()[1]
        self._peer: socket.socket | None = None

    def accept(self) -> None:
        self._peer, _ = self._server.accept()

    def say(self, text: bytes) -> None:
        assert self._peer is not None
        self._peer.sendall(text)

    def hang_up(self) -> None:
        if self._peer is not None:
            self._peer.close()

    def close(self) -> None:
        self.hang_up()
        self._server.close()


@pytest.fixture
def speaker() -> Iterator[Speaker]:
    server = Speaker()
    yield server
    server.close()


@contextmanager
def running(speaker: Speaker, schema: str, **options: Any) -> Iterator[tuple[hw.Job, Any, Any]]:
    """A job that reads what is said, its rows and its dead letters."""
    env = hw.Environment(
        "heard", engine="local", checkpoint_interval="20 ms", restart=hw.restart.fixed(3, delay="50 ms")
    )
    heard, letters = hw.connectors.memory(), hw.connectors.memory()
    lines = env.source(hw.connectors.socket("127.0.0.1", speaker.port, **options), schema)
    lines.sink(heard)
    if options.get("bad_records") == "dead_letters":
        lines.side_output(hw.DEAD_LETTERS).sink(letters)
    with pytest.warns(hw.GuaranteeWarning, match="at-most-once"):
        job = env.start()
    try:
        yield job, heard, letters
    finally:
        job.stop()


def until(done: Any) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not done():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.01)


def test_lines_come_whole_whatever_the_pieces(speaker: Speaker) -> None:
    with running(speaker, "line string") as (_, heard, _letters):
        speaker.accept()
        for piece in (b"one\ntw", b"o\r\n", b"", b"\nfour ", "fünf\nlast".encode()):
            speaker.say(piece)
            time.sleep(0.03)
        until(lambda: len(heard.rows) == 4)
        speaker.hang_up()
        speaker.accept()  # it comes back for more
        until(lambda: len(heard.rows) == 5)
        speaker.say(b"again\n")
        until(lambda: len(heard.rows) == 6)
    assert [row.line for row in heard.rows] == ["one", "two", "", "four fünf", "last", "again"]


def test_many_lines_wait_in_the_connection(speaker: Speaker) -> None:
    count = 200_000
    with running(speaker, "n bigint", format="csv") as (_, heard, _letters):
        speaker.accept()
        sender = threading.Thread(target=lambda: speaker.say(b"".join(b"%d\n" % n for n in range(count))))
        sender.start()
        until(lambda: len(heard.rows) == count)
        sender.join()
    assert [row.n for row in heard.rows] == list(range(count))


def test_bad_lines_are_dead_letters(speaker: Speaker) -> None:
    with running(speaker, "n bigint", format="json", bad_records="dead_letters") as (_, heard, letters):
        speaker.accept()
        speaker.say(b'{"n": 1}\nhello\n{"n": 2}\n')
        until(lambda: len(heard.rows) == 2 and len(letters.rows) == 1)
    assert [(row.position, row.value) for row in letters.rows] == [(1, b"hello")]


def test_a_bad_line_stops_the_job_with_its_number(speaker: Speaker) -> None:
    with running(speaker, "n bigint", format="json") as (job, _, _letters):
        speaker.accept()
        speaker.say(b'{"n": 1}\nhello\n')
        with pytest.raises(hw.SourceError, match=r"line 1 is no json.*bad_records"):
            job.wait(LIMIT_S)


def test_nobody_there_is_told_with_the_address(speaker: Speaker) -> None:
    speaker.close()
    env = hw.Environment("heard", engine="local")
    env.source(hw.connectors.socket("127.0.0.1", speaker.port), "line string").sink(hw.connectors.memory())
    with pytest.raises(hw.SourceError, match=rf"127.0.0.1:{speaker.port} cannot be read: it takes no connection"):
        env.run(bounded=False)
