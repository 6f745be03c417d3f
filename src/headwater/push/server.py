"""The server around the application: on loopback unless told otherwise, with a token in any case."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from headwater.durations import Duration, duration_ms
from headwater.eventlog import EventLog
from headwater.push.app import PushApp
from headwater.serving.limits import Limits
from headwater.serving.server import serving


@dataclass(frozen=True)
class PushServer:
    """A server that runs."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"PushServer({self.url})"


@contextmanager
def serve(
    log: str | os.PathLike[str],
    *,
    token: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    max_body_bytes: int = 8 << 20,
    max_bytes_in_flight: int = 32 << 20,
    max_waiting: int = 32,
    max_connections: int = 256,
    header_timeout: Duration = "10 s",
    body_timeout: Duration = "30 s",
) -> Iterator[PushServer]:
    """A server for an event log, in a thread of this process; without `token` one is made up, without `port` one is free."""
    token = token or secrets.token_urlsafe(24)
    limits = Limits(
        max_body_bytes,
        max_bytes_in_flight,
        max_waiting,
        max_connections,
        header_s=duration_ms(header_timeout, what="header_timeout") / 1000,
        body_s=duration_ms(body_timeout, what="body_timeout") / 1000,
    )
    app = PushApp(EventLog(log), token, limits)
    with serving(app.asgi, "push", limits, host=host, port=port) as url:
        yield PushServer(url, token)
