"""A connection of the server: it takes only so long, and its place is given away when others need it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from headwater.serving.limits import Limits


class Connection(H11Protocol):
    """What uvicorn does with a connection, within limits of time and number.

    A clock runs while a request's headers are due, and while nobody takes an answer. Of too many connections, the one
    that has owed a request for longest is closed; who has sent one keeps its place.
    """

    def __init__(self, limits: Limits, **given: Any) -> None:
        super().__init__(**given)
        self._limits = limits
        self._due = _Clock(self.loop, limits.header_s)
        """Runs while a request is due."""
        self._unread = _Clock(self.loop, limits.body_s)
        """Runs while the client does not take what it is sent."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request; make room for it, or say that there is none."""
        super().connection_made(transport)
        self._expect_request()
        if len(self.connections) <= self._limits.max_connections:
            return
        others = [one for one in self.connections if isinstance(one, Connection) and one is not self]
        owing = [one for one in others if one.owing_since is not None]
        if owing:
            min(owing, key=lambda one: one.owing_since or 0).give_up()
        else:
            self._answer_and_close(503, "the server has as many connections as it takes; come again in a moment")

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._due.stop()
        self._unread.stop()
        super().connection_lost(exc)

    @property
    def owing_since(self) -> float | None:
        """Since when a request has been due; None while one is worked on."""
        return self._due.since

    def give_up(self) -> None:
        """Close a connection whose request has not come."""
        is_listening = not self.flow.write_paused
        if is_listening and self.conn.their_state is h11.IDLE and self.conn.our_state is h11.IDLE:
            self._answer_and_close(408, "the headers of the request did not come in time")
        else:
            self.transport.abort()  # it does not take its answer, or still sends the body of what was answered

    def handle_events(self) -> None:
        """Go on with what has come."""
        super().handle_events()
        if self._open_cycle() is not None:
            self._due.stop()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._expect_request()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Say that this is not HTTP, unless an answer is under way."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._answer_and_close(400, "the request is not HTTP/1.1 as it must be")
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Give the client a while to take what it is sent."""
        super().pause_writing()
        self._unread.start(self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client took some of it."""
        self._unread.stop()
        super().resume_writing()

    def shutdown(self) -> None:
        """End with the answer of a request that is here; one that is still being sent is not waited for."""
        cycle = self._open_cycle()
        if cycle is not None and cycle.more_body:
            self.transport.abort()
        else:
            super().shutdown()

    def _expect_request(self) -> None:
        if not self.transport.is_closing():
            self._due.start(self.give_up)

    def _open_cycle(self) -> RequestResponseCycle | None:
        """The request that is not answered yet."""
        cycle: RequestResponseCycle | None = self.cycle
        return None if cycle is None or cycle.response_complete else cycle

    def _answer_and_close(self, status: int, why: str) -> None:
        self._due.stop()
        if (cycle := self._open_cycle()) is not None:
            cycle.disconnected = True  # nobody is to answer after this
            cycle.message_event.set()
        content = json.dumps({"error": why}).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(content)).encode()),
            (b"connection", b"close"),
        ]
        for event in (h11.Response(status_code=status, headers=headers), h11.Data(data=content), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class _Clock:
    """Does something after a while, unless it is stopped."""

    def __init__(self, loop: asyncio.AbstractEventLoop, after_s: float) -> None:
        self._loop = loop
        self._after_s = after_s
        self._handle: asyncio.TimerHandle | None = None
        self.since: float | None = None

    def start(self, action: Callable[[], None]) -> None:
        self.stop()
        self.since = self._loop.time()
        self._handle = self._loop.call_later(self._after_s, action)

    def stop(self) -> None:
        self.since = None
        if self._handle is not None:
            self._handle.cancel()
