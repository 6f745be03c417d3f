"""The other workers of a run on the same executor: which of them holds the copy of a subtask, and how it is asked.

They meet in a folder of the executor's, which only its user can enter: each worker listens on a socket there, and a file for
each subtask says who had it last. That is a hint: whether a copy is the right one, its holder tells.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path

from headwater.spark.copies.computed import Place
from headwater.spark.copies.wire import Answer, Asked, received_answer, send_answer

_LOG = logging.getLogger("headwater.spark")
_LONGEST_ADDRESS = 100
"""In bytes, of a socket's path; systems take 104 to 108. Linux has a short name for a folder that is open."""
_OPEN_FOLDERS = Path("/proc/self/fd")
_WAITING = 16
"""How many workers may wait to be heard."""
_GONE = (EOFError, OSError)
"""What it looks like when the other worker has ended."""


class Neighbours:
    """This worker among the others of a run."""

    def __init__(self, folder: Path, answer: Callable[[Asked], Answer]) -> None:
        """`answer` is called in threads of its own, one for each worker that asks."""
        self._folder, self._answer = folder, answer
        self._own = folder / str(os.getpid())
        self._open_folder: int | None = None
        self._listener: Listener | None = None
        self._announced: set[Place] = set()

    def ask(self, asked: Asked) -> Answer | None:
        """What the holder of the copy says; None where there is no other one, or it has ended."""
        holder = self._holder(asked.place)
        if holder is None or holder == self._own:
            return None
        try:
            with Client(self._address(holder.name), "AF_UNIX") as connection:
                asked.send(connection)
                return received_answer(connection, asked.head)
        except _GONE:
            return None

    def announce(self, place: Place) -> None:
        """Let the others know that the copy is here."""
        if place in self._announced or not self._listens():
            return
        told = self._own.with_suffix(".told")
        told.write_text(self._own.name)
        told.replace(self._file(place))
        self._announced.add(place)

    def withdraw(self, place: Place) -> None:
        """The copy is not here any more; who has it will say so."""
        self._announced.discard(place)

    def close(self) -> None:
        """Listen no more."""
        if self._listener is not None:
            self._listener.close()
        if self._open_folder is not None:
            os.close(self._open_folder)
            self._open_folder = None

    def _file(self, place: Place) -> Path:
        return self._folder / f"{place.level}-{place.subtask}"

    def _holder(self, place: Place) -> Path | None:
        try:
            name = self._file(place).read_text()
        except OSError:
            return None
        return self._folder / name if name.isdigit() else None

    def _listens(self) -> bool:
        """Whether others can ask this worker; where the path of its socket is too long, each has copies of its own."""
        if self._listener is None and (not self._is_far(self._own.name) or _OPEN_FOLDERS.is_dir()):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self._own.unlink(missing_ok=True)  # of a process that is gone and had the same number
            self._listener = Listener(self._address(self._own.name), "AF_UNIX", backlog=_WAITING)
            threading.Thread(target=self._listen, args=[self._listener], daemon=True, name="headwater-copies").start()
        return self._listener is not None

    def _is_far(self, name: str) -> bool:
        return len(os.fsencode(self._folder / name)) > _LONGEST_ADDRESS

    def _address(self, name: str) -> str:
        """A socket's path, or where that is too long a shorter one in this process."""
        if not self._is_far(name):
            return str(self._folder / name)
        if self._open_folder is None:
            self._open_folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        return str(_OPEN_FOLDERS / str(self._open_folder) / name)

    def _listen(self, listener: Listener) -> None:
        while True:
            try:
                connection = listener.accept()
            except OSError:  # it was closed
                return
            threading.Thread(target=self._hear, args=[connection], daemon=True, name="headwater-copies").start()

    def _hear(self, connection: Connection) -> None:
        with connection:
            try:
                send_answer(self._answer(Asked.received(connection)), connection)
            except _GONE as error:  # who asked has ended, and its attempt with it
                _LOG.debug("a worker that asked has ended: %r", error)
