"""The server around the application: on loopback unless told otherwise, with a token in any case."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headwater.errors import JobError
from headwater.eventlog import EventLog
from headwater.push.app import PushApp

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
    max_waiting: int = 32,
) -> Iterator[PushServer]:
    """A server for an event log, in a thread of this process; without `token` one is made up, without `port` one is free."""
    token = token or secrets.token_urlsafe(24)
    app = PushApp(EventLog(log), token, max_body_bytes=max_body_bytes, max_waiting=max_waiting).asgi()
    config = _uvicorn().Config(app, host=host, port=port, log_level="warning", access_log=False)
    server = _uvicorn().Server(config)
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


def _uvicorn() -> Any:
    try:
        import starlette.applications  # noqa: F401  both are needed
        import uvicorn
    except ImportError:
        raise JobError.not_supported(
            "headwater.push needs the packages starlette and uvicorn", "pip install 'headwater[push]'"
        ) from None
    return uvicorn
