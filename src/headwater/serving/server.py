"""A server in a thread of this process: on loopback unless told otherwise, within limits in any case."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from headwater.errors import JobError
from headwater.serving.limits import Limits

if TYPE_CHECKING:
    from starlette.applications import Starlette

_START_S = 30


@contextmanager
def serving(
    application: Callable[[], Starlette],
    name: str,
    limits: Limits,
    *,
    host: str,
    port: int,
    at_end: Callable[[], None] = lambda: None,
) -> Iterator[str]:
    """Serve an application for as long as this lasts; gives the address that it has.

    `name` is that of the part of Headwater, whose extra brings the packages that are needed. `at_end` lets answers end
    that would never do so by themselves.
    """
    server = _server(application, name, limits, host, port)
    thread = threading.Thread(target=server.run, name=f"headwater-{name}", daemon=True)
    thread.start()
    deadline = time.monotonic() + _START_S
    while not server.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            raise JobError.not_supported(
                f"the {name} server cannot listen on {host}:{port}", "choose a port that is free"
            )
        time.sleep(0.01)
    at, its_port = server.servers[0].sockets[0].getsockname()[:2]
    try:
        yield f"http://{at}:{its_port}"
    finally:
        at_end()
        server.should_exit = True
        thread.join(_START_S)


def _server(application: Callable[[], Starlette], name: str, limits: Limits, host: str, port: int) -> Any:
    try:
        import uvicorn

        from headwater.serving.connection import Connection

        made = application()
    except ImportError:
        raise JobError.not_supported(
            f"headwater.{name} needs the packages starlette and uvicorn", f"pip install 'headwater[{name}]'"
        ) from None
    connection: Any = partial(Connection, limits)
    return uvicorn.Server(
        uvicorn.Config(
            made,
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
