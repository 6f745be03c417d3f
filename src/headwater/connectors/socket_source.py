"""Lines from a TCP connection. What was received is kept in the job's folder, so that epochs replay; what was not is lost."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from headwater.connectors.contract import DeadLetters, Positions, Source
from headwater.connectors.formats import Format, numbered_rows
from headwater.data.schema import Schema
from headwater.durations import Duration, duration_ms
from headwater.errors import SourceError
from headwater.eventlog import EventLog, Retention, Topic

_SPLIT = "0"
_PIECE_BYTES = 1 << 16
_MOST_BYTES = 8 << 20
"""Received for one epoch, and the longest line."""
_MOST_WAITING = 100_000
"""Lines that may wait to be read; then the sender waits, as TCP makes it."""
_KEPT = Retention(max_bytes=256 << 20)
"""More than any epoch that may be computed again has read."""


class SocketSource(Source):
    """One split. The process that plans epochs holds the connection; lines are numbered as they come."""

    replayable = False

    def __init__(self, host: str, port: int, values: Format, timeout: Duration, *, has_dead_letters: bool) -> None:
        self._address = (host, port)
        self._format = values
        self._timeout_s = duration_ms(timeout, what="timeout") / 1000
        self.has_dead_letters = has_dead_letters
        self.finds_columns_by_name = values.name == "json"
        self._schema: pa.Schema | None = None
        self._received: Topic | None = None
        self._connection: socket.socket | None = None
        self._rest = b""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_connection": None, "_rest": b""}

    def describe(self) -> str:
        return f"socket {self._address[0]}:{self._address[1]}"

    def remember_in(self, folder: Path) -> None:
        self._received = EventLog(folder).create_topic("received", "line binary", retention=_KEPT, exist_ok=True)

    def check(self, schema: Schema) -> None:
        self._format.check(schema.arrow, "socket")
        self._schema = schema.arrow

    def earliest(self) -> Positions:
        return {_SPLIT: 0}

    def latest(self, start: Positions, elapsed_ms: int) -> Positions:
        received = self._topic()
        end = received.end_offsets()[0]
        if end - start.get(_SPLIT, 0) < _MOST_WAITING:
            lines = self._lines()
            if lines:
                _, end = received.append([(line,) for line in lines])
                received.flush()
        return {_SPLIT: end}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | DeadLetters]:
        assert self._schema is not None, "a source is checked before it is read"
        for batch in self._topic().read(0, start, end):
            lines = list(enumerate(batch["line"].to_pylist(), start))
            start += len(lines)
            for found in numbered_rows(lines, self._format, self._schema):
                if isinstance(found, tuple):
                    (position, line), reason = found
                    yield self._dead_letter(position, line, reason)
                else:
                    yield found

    def release(self, split: str) -> None:
        self._close()

    def _topic(self) -> Topic:
        assert self._received is not None, "a source is given a folder before it is read"
        return self._received

    def _dead_letter(self, position: int, line: bytes, reason: str) -> DeadLetters:
        if not self.has_dead_letters:
            raise SourceError.unreadable(
                self.describe(),
                f"line {position} is no {self._format.name}: {reason}",
                "set bad_records='dead_letters' to put such lines aside, or change the schema or the format",
            )
        return DeadLetters.of(self, _SPLIT, position, reason, line)

    def _lines(self) -> list[bytes]:
        """The lines that have come since; the last one, of a connection that was closed, needs no end."""
        text = self._rest + self._heard()
        *lines, self._rest = text.split(b"\n")
        if len(self._rest) >= _MOST_BYTES:
            raise SourceError.unreadable(
                self.describe(), f"a line is longer than {_MOST_BYTES:,} bytes", "see that lines end with a line feed"
            )
        if self._connection is None and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        return [line.removesuffix(b"\r") for line in lines]

    def _heard(self) -> bytes:
        """What is there by now, up to a limit; closes the connection at its end."""
        connection = self._connected()
        pieces: list[bytes] = []
        while sum(map(len, pieces)) < _MOST_BYTES:
            try:
                piece = connection.recv(_PIECE_BYTES)
            except BlockingIOError:
                break
            except ConnectionError:
                piece = b""
            if not piece:
                self._close()
                break
            pieces.append(piece)
        return b"".join(pieces)

    def _connected(self) -> socket.socket:
        if self._connection is None:
            try:
                self._connection = socket.create_connection(self._address, self._timeout_s)
            except OSError as error:
                raise SourceError.unreadable(
                    self.describe(),
                    f"it takes no connection: {error}",
                    "start what writes to it (as in `nc -lk 9999`), then the job again; a restart strategy tries by itself",
                ) from None
            self._connection.settimeout(0)  # what is not there yet comes with the next epoch
        return self._connection

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
