"""The server around the application: on loopback unless told otherwise, with a token in any case."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from headwater.durations import Duration, duration_ms
from headwater.errors import JobError
from headwater.eventlog import EventLog
from headwater.push.app import PushApp
from headwater.push.limits import Limits

_START_S = 30


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
    server = _server(PushApp(EventLog(log), token, limits), limits, host, port)
    thread = threading.Thread(target=server.run, name="headwater-push", daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise JobError.not_supported(
                f"the push server cannot listen on {host}:{port}", "choose a port that is free"
            )
        time.sleep(0.01)
    at, its_port = server.servers[0].sockets[0].getsockname()[:2]
    try:
        yield PushServer(f"http://{at}:{its_port}", token)
    finally:
        server.should_exit = True
        thread.join(_START_S)


def _server(app: PushApp, limits: Limits, host: str, port: int) -> Any:
    try:
        import uvicorn

        from headwater.push.connection import Connection

        application = app.asgi()
    except ImportError:
        raise JobError.not_supported(
            "headwater.push needs the packages starlette and uvicorn", "pip install 'headwater[push]'"
        ) from None
    connection: Any = partial(Connection, limits)
    return uvicorn.Server(
        uvicorn.Config(
            application,
            host=host,
            port=port,
            http=connection,
            backlog=max(limits.max_connections // 4, 16),  # so many at once are looked at before others come
            ws="none",
            lifespan="off",
            log_level="error",  # what hostile requests make it say would fill a disk
            access_log=False,
            server_header=False,
            proxy_headers=False,
        )
    )
