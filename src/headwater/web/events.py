"""What changes, told to every page that is open: server-sent events."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from headwater.serving.refused import Refused

_POLL_S = 0.4
"""How often jobs are looked at while somebody listens: an epoch is seen well within two seconds of its commit."""
_BEAT_S = 15.0
"""A line that says nothing, so that a connection nobody reads from is noticed."""
_MOST_LISTENERS = 32


class Events:
    """Looks at jobs while somebody listens, once for all, and tells when they are not as before."""

    def __init__(self, look: Callable[[], bytes], stamp: Callable[[bytes], bytes]) -> None:
        """`look` gives what is told, on a thread; `stamp` what must differ for it to be told again."""
        self._look, self._stamp = look, stamp
        self._listeners: set[asyncio.Queue[bytes]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._newest: bytes | None = None
        self._is_over = False

    def close(self) -> None:
        """Let streams end. Called from any thread."""
        self._is_over = True

    async def stream(self) -> AsyncIterator[bytes]:
        """What a listener is sent, for as long as it listens."""
        if len(self._listeners) >= _MOST_LISTENERS:
            raise Refused(429, f"{_MOST_LISTENERS} listen already; close a page")
        inbox: asyncio.Queue[bytes] = asyncio.Queue(1)
        self._listeners.add(inbox)
        if self._newest is not None:
            inbox.put_nowait(self._newest)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.create_task(self._poll())
        return self._sent(inbox)

    async def _sent(self, inbox: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
        quiet_s = 0.0
        try:
            while not self._is_over:
                try:
                    content = await asyncio.wait_for(inbox.get(), _POLL_S)
                except TimeoutError:
                    quiet_s += _POLL_S
                    if quiet_s < _BEAT_S:
                        continue
                    content = b""
                quiet_s = 0.0
                yield b"event: jobs\ndata: " + content + b"\n\n" if content else b": still here\n\n"
        finally:
            self._listeners.discard(inbox)

    async def _poll(self) -> None:
        told = b""
        while self._listeners and not self._is_over:
            found = await asyncio.to_thread(self._look)
            stamp = hashlib.sha256(self._stamp(found)).digest()
            if stamp != told:
                told, self._newest = stamp, found
                for inbox in self._listeners:
                    with suppress(asyncio.QueueEmpty):
                        inbox.get_nowait()  # what it has not read yet is out of date
                    inbox.put_nowait(found)
            await asyncio.sleep(_POLL_S)
        self._newest = None
