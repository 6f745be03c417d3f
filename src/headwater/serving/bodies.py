"""The bodies of requests: received within bounds of size, of time, and of what all of them hold together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from headwater.serving.limits import Limits
from headwater.serving.refused import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

_GRACE_S = 1.0
"""A body that arrives for longer than this may be given up when others need its room."""


class Bodies:
    """The bodies that are being received or worked on, whose bytes together have a bound.

    Only what has arrived is counted. When the bound is met, the newcomer is told to come again, and the body that has
    been arriving for longest is given up: who sends slowly does not keep others out.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held_bytes = 0
        self._arriving: dict[asyncio.Timeout, float] = {}
        """Since when, the longest first."""

    @asynccontextmanager
    async def received(self, request: Request) -> AsyncIterator[bytearray]:
        """The body of a request, which is counted as long as it is in use."""
        self._check_announced(request)
        body = bytearray()
        try:
            await self._receive(request, body)
            yield body
        finally:
            self._held_bytes -= len(body)

    async def _receive(self, request: Request, body: bytearray) -> None:
        from starlette.requests import ClientDisconnect

        limit = asyncio.timeout(self._limits.body_s)
        try:
            async with limit:
                self._arriving[limit] = asyncio.get_running_loop().time()
                async for chunk in request.stream():
                    if len(body) + len(chunk) > self._limits.max_body_bytes:
                        raise self._too_large()
                    self._make_room(len(chunk))
                    body += chunk
                    self._held_bytes += len(chunk)
        except TimeoutError:
            raise Refused(408, f"the body had {len(body):,} bytes when its time was over; send fewer rows") from None
        except ClientDisconnect:
            raise Refused(400, "the connection was closed before the end of the body") from None
        finally:
            self._arriving.pop(limit, None)

    def _check_announced(self, request: Request) -> None:
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > self._limits.max_body_bytes:
            raise self._too_large()

    def _too_large(self) -> Refused:
        return Refused(413, f"a request may have {self._limits.max_body_bytes:,} bytes; send fewer rows at a time")

    def _make_room(self, more_bytes: int) -> None:
        if self._held_bytes + more_bytes <= self._limits.max_bytes_in_flight:
            return
        now = asyncio.get_running_loop().time()
        longest, since = next(iter(self._arriving.items()))
        if now - since > _GRACE_S:
            del self._arriving[longest]
            longest.reschedule(now)
        raise Refused(429, f"requests hold {self._held_bytes:,} bytes; come again in a moment")
