"""An asyncio event loop in a thread of its own, called from ordinary code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs whatever runs in the caller's thread (a notebook has a loop there already), and between two calls.

    The second keeps connections of clients alive that a coroutine opened in an earlier call.
    """

    def __init__(self, name: str) -> None:
        started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = threading.Thread(target=_serve, args=(started,), name=name, daemon=True)
        self._thread.start()
        self._loop, self._over = started.result()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; what it raises is raised here."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()  # of a caller that was interrupted; where there is a result this does nothing

    def close(self) -> None:
        """Cancel what still runs, close the loop and end the thread."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()


def _serve(started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]]) -> None:
    async def until_over() -> None:
        over = asyncio.Event()
        started.set_result((asyncio.get_running_loop(), over))
        await over.wait()

    try:
        asyncio.run(until_over())
    except OSError as error:  # no file descriptor left for a loop: whoever waits for it must hear
        if started.done():
            raise
        started.set_exception(error)
