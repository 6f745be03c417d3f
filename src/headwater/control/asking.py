"""Requests to a job that runs in another process, and the wait for its answer."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from headwater.durations import Duration, duration_ms
from headwater.errors import JobError
from headwater.job.lock import Owner
from headwater.job.reading import JobReader
from headwater.job.requests import Action, JobAnswer, JobRequest, StateRequest
from headwater.job.state_view import StateView

_POLL_S = 0.05
_GRACE_S = 5.0
"""How long after its end a job may answer: it gives its folder up first, so that another can start when it has answered."""


def request_stop(
    job_dir: str | os.PathLike[str],
    *,
    savepoint: str | os.PathLike[str] | None = None,
    drain: bool = False,
    timeout: Duration | None = None,
) -> Path | None:
    """Let a job stop as `job.stop` does, and wait until it has; with `savepoint`, that folder is returned.

    Without a `timeout` it waits as long as the job lives.
    """
    folder = None if savepoint is None else str(Path(savepoint).absolute())
    return _ask(Path(job_dir), JobRequest(Action.STOP, folder, drain), timeout)


def request_savepoint(
    job_dir: str | os.PathLike[str], path: str | os.PathLike[str], *, timeout: Duration | None = None
) -> Path:
    """Let a job take a savepoint while it runs, as `job.savepoint` does; the folder is returned when it is complete.

    The path is one that the job can write to. Without a `timeout` it waits as long as the job lives.
    """
    taken = _ask(Path(job_dir), JobRequest(Action.SAVEPOINT, str(Path(path).absolute())), timeout)
    assert taken is not None
    return taken


def request_state(
    job_dir: str | os.PathLike[str],
    step: str,
    name: str,
    *,
    epoch: int | None = None,
    timeout: Duration | None = None,
) -> StateView:
    """A state of a running job, as `job.state` gives it: at its newest committed epoch, or at one that is retained.

    Without a `timeout` it waits as long as the job lives.
    """
    with _asked(Path(job_dir), JobRequest(Action.STATE, state=StateRequest(step, name, epoch)), timeout) as found:
        answer, table = found
        assert answer.epoch is not None
        with pa.OSFile(str(table), "rb") as file:
            return StateView(step, name, answer.epoch, pa.ipc.open_file(file).read_all())


def _ask(job_dir: Path, request: JobRequest, timeout: Duration | None) -> Path | None:
    with _asked(job_dir, request, timeout) as (answer, _):
        return None if answer.savepoint is None else Path(answer.savepoint)


@contextmanager
def _asked(job_dir: Path, request: JobRequest, timeout: Duration | None) -> Iterator[tuple[JobAnswer, Path]]:
    """Put a request down and wait for the answer, which is taken away at the end, as the table that may be beside it."""
    job = JobReader(job_dir)
    name, owner, control = job.identity.name, job.owner(), job.layout.control
    if owner is None:
        raise JobError.not_running(name, str(job.path))
    asked = f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}"
    control.requests.mkdir(parents=True, exist_ok=True)
    request.write(control.request(asked))
    try:
        answer = _answer(job, asked, owner, request, timeout)
        if answer.error is not None:
            raise JobError.request_failed(str(job.path), request.action.value, answer.error)
        yield answer, control.table(asked)
    finally:
        for file in (control.request(asked), control.answer(asked), control.table(asked)):
            file.unlink(missing_ok=True)


def _answer(
    job: JobReader, asked: str, owner: Owner | None, request: JobRequest, timeout: Duration | None
) -> JobAnswer:
    file, what = job.layout.control.answer(asked), request.action.value
    began = time.monotonic()
    limit_s = None if timeout is None else duration_ms(timeout, what="timeout") / 1000
    gone_since: float | None = None
    while (answer := JobAnswer.read_if_there(file)) is None:
        now = time.monotonic()
        if job.owner() != owner:
            gone_since = gone_since or now
            if now - gone_since > _GRACE_S:
                raise JobError.no_answer(str(job.path), what, f"its process ({owner}) has died")
        elif limit_s is not None and now - began > limit_s:
            raise JobError.no_answer(str(job.path), what, f"{timeout} have passed, and it is perhaps still at it")
        time.sleep(_POLL_S)
    return answer
