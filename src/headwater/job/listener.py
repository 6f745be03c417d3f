"""The listener: beside a running job, lets other processes see its status and takes their requests.

It works on a thread of its own, off the path of epochs. Everything goes through files of the job folder: other processes
may be on other hosts, and nothing has to be opened for them.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from headwater.errors import HeadwaterError, JobError
from headwater.job.layout import JobLayout
from headwater.job.requests import Action, JobAnswer, JobRequest, StateRequest
from headwater.job.state_view import StateView
from headwater.job.status import JobStatus

_POLL_S = 0.2
"""Soon enough for somebody who waits; a look costs the listing of an empty folder."""
_SAVEPOINT_S = 60
"""How long a job that ends waits for a savepoint that it was asked for."""


class Listening(Protocol):
    """A job, as far as the listener asks it."""

    def status(self) -> JobStatus:
        """Where it stands."""

    def begin_stop(self, savepoint: Path | None, *, drain: bool) -> None:
        """Let it stop; how that went, the listener is told at the end."""

    def savepoint(self, path: Path) -> Path:
        """Take a savepoint."""

    def state(self, uid: str, name: str, *, epoch: int | None) -> StateView:
        """A state of a step."""


class Listener:
    """Writes what the status says whenever that has changed, and answers requests in the order in which it finds them."""

    def __init__(self, layout: JobLayout, job: Listening) -> None:
        self._file, self._control, self._job = layout.status, layout.control, job
        self._written: JobStatus | None = None
        self._writing = threading.Lock()
        self._stops: list[str] = []
        """The requests to stop, which are answered at the end."""
        self._too_late: list[str] = []
        self._busy: str | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-listener", daemon=True)

    def start(self) -> None:
        """Begin, with what was asked since the process took the folder."""
        for folder in (self._control.requests, self._control.answers):
            folder.mkdir(parents=True, exist_ok=True)
        self._write_status(self._job.status())
        self._thread.start()

    def close(self, last: JobStatus, *, waits: bool) -> None:
        """Write the last status and take up nothing more, while the folder is still the job's.

        With `waits`, first a savepoint that is being taken is completed.
        """
        self._ended.set()
        if waits and self._thread.ident is not None:
            self._thread.join(_SAVEPOINT_S)
        self._write_status(last)
        self._too_late = [asked for asked in (self._busy, *self._control.waiting()) if asked is not None]
        for asked in self._too_late:
            self._control.request(asked).unlink(missing_ok=True)

    def finish(self, answer: JobAnswer) -> None:
        """Tell how the job ended to those who asked it to stop, and to those who asked too late. The folder is free."""
        for asked in self._stops:
            self._answer(asked, answer)
        for asked in self._too_late:
            self._answer(asked, JobAnswer(error="the job has ended before it was done"))

    def _run(self) -> None:
        while not self._ended.wait(_POLL_S):
            self._write_status(self._job.status())
            for asked in self._control.waiting():
                if not self._ended.is_set():
                    self._take_up(asked)

    def _take_up(self, asked: str) -> None:
        file = self._control.request(asked)
        self._busy = asked
        try:
            request = JobRequest.read_if_there(file)
            file.unlink(missing_ok=True)
            if request is None:  # it was withdrawn
                return
            folder = None if request.savepoint is None else Path(request.savepoint)
            if request.action is Action.STOP:
                if self._stops:
                    raise JobError.not_supported("the job is being stopped already", "wait until it has")
                self._job.begin_stop(folder, drain=request.drain)
                self._stops.append(asked)
                return
            if request.state is not None:
                self._answer(asked, self._looked_at(asked, request.state))
                return
            if folder is None:
                raise JobError.corrupt(str(file), "it does not say where the savepoint is to be")
            self._answer(asked, JobAnswer(str(self._job.savepoint(folder))))
        except Exception as error:  # whatever it is, who asked is told, and the job goes on
            file.unlink(missing_ok=True)
            self._answer(asked, JobAnswer(error=str(error) if isinstance(error, HeadwaterError) else repr(error)))
        finally:
            self._busy = None

    def _looked_at(self, asked: str, wanted: StateRequest) -> JobAnswer:
        """Put a state down beside the answer: as a file, as it may be large."""
        view = self._job.state(wanted.step, wanted.name, epoch=wanted.epoch)
        table = view.table()
        with pa.OSFile(str(self._control.table(asked)), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        return JobAnswer(epoch=view.epoch)

    def _answer(self, asked: str, answer: JobAnswer) -> None:
        with suppress(OSError):  # on a full disk who asked is told nothing, and the job goes on
            answer.write(self._control.answer(asked))

    def _write_status(self, status: JobStatus) -> None:
        with self._writing, suppress(OSError):  # it is there to be looked at: a job goes on without
            if status is not self._written:
                status.write(self._file)
                self._written = status
