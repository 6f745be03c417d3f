"""The token that a request must show."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING

from headwater.serving.refused import Refused

if TYPE_CHECKING:
    from starlette.requests import Request


def check_token(request: Request, token: str) -> None:
    """Refuse a request that does not show the server's token, once, in the header that only a program can set."""
    given = request.headers.getlist("authorization")
    expected = f"Bearer {token}".encode()
    if len(given) != 1 or not hmac.compare_digest(given[0].encode("latin-1"), expected):
        raise Refused(401, "send the server's token as 'Authorization: Bearer …'")
