"""The server of the dashboard: on loopback, with a token."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from headwater.serving.limits import Limits
from headwater.serving.server import serving
from headwater.web.app import WebApp
from headwater.web.watched import WatchedJobs

HOST = "127.0.0.1"
LIMITS = Limits(
    max_body_bytes=64 << 10,
    max_bytes_in_flight=1 << 20,
    max_waiting=64,
    max_connections=256,
    header_s=10.0,
    body_s=30.0,
)


@dataclass(frozen=True)
class Dashboard:
    """A server that runs."""

    url: str
    token: str

    def __repr__(self) -> str:
        return f"Dashboard({self.url})"

    @property
    def link(self) -> str:
        """What a browser is opened with."""
        return f"{self.url}/?token={self.token}"


@contextmanager
def serve(
    folders: Sequence[str | os.PathLike[str]],
    *,
    port: int = 0,
    token: str | None = None,
    savepoints: str | os.PathLike[str] | None = None,
) -> Iterator[Dashboard]:
    """Serve the jobs in some folders, in a thread of this process; without `port` one is free, without `token` one is made."""
    token = token or secrets.token_urlsafe(24)
    jobs = WatchedJobs(
        [Path(folder) for folder in folders], None if savepoints is None else Path(savepoints).absolute()
    )
    app = WebApp(jobs, token, LIMITS)
    with serving(app.asgi, "ui", LIMITS, host=HOST, port=port, at_end=app.events.close) as url:
        yield Dashboard(url, token)
