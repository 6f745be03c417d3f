"""Who is answered at all: requests to this host, from its own pages or from no page, with the token."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.serving.refused import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

_LOG = logging.getLogger("headwater.web")
_NAMES = ("127.0.0.1", "localhost", "[::1]")
_QUIET_S = 10.0
"""Between two lines about refusals of one kind: many would fill a disk, and say no more."""
_OURS = ("same-origin", "none")
"""What browsers say of a request that no other site has made."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer: pages run their own scripts alone, are in no frame, and tell nobody where they were."""


def check_host(request: Request) -> None:
    """Refuse a name that is not ours: another site may have let its own name lead here."""
    given = request.headers.getlist("host")
    server = request.scope.get("server")
    port = None if server is None else server[1]
    ours = {f"{name}:{port}" for name in _NAMES} | (set(_NAMES) if port == 80 else set())
    if len(given) != 1 or given[0].lower() not in ours:
        raise Refused(421, "this server is called by its address on this machine, and by no other name")


def check_site(request: Request) -> None:
    """Refuse what a page of another site has asked a browser for."""
    origins = request.headers.getlist("origin")
    site = request.headers.get("sec-fetch-site", "none")
    if any(origin != f"http://{request.headers['host']}" for origin in origins) or site not in _OURS:
        raise Refused(403, "a page of another site has asked for this; it is answered to none")


class RefusalLog:
    """Logs refusals, of one kind now and then."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._told: dict[int, tuple[float, int]] = {}
        """By status: when it was told last, and how often it was not since."""

    def note(self, request: Any, refused: Refused) -> None:
        """Log a refusal, or count it."""
        last_s, missed = self._told.get(refused.status, (-_QUIET_S, 0))
        now_s = self._now_s()
        if now_s - last_s < _QUIET_S:
            self._told[refused.status] = last_s, missed + 1
            return
        self._told[refused.status] = now_s, 0
        more = f", and {missed:,} others since the last such line" if missed else ""
        place = ascii(request.url.path)[:100]
        _LOG.warning("refused (%d) %s %s%s: %s", refused.status, request.method[:10], place, more, refused)
