"""Errors across Spark: what a task raises reaches the driver as text inside text. This keeps ours whole.

A task's error travels as one marked line of JSON in the exception's message; the driver finds the line and makes the
error again, so that the user sees step, key, time and own traceback first, and Spark's stack only as the cause.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkException

from headwater.errors import HeadwaterError, JobError, UserCodeError
from headwater.job.checkpoints.listing import damage_of_newest
from headwater.spark.errors import DiskFull

_MARK = "headwater-error:"
_DISK_FULL = "No space left on device"
"""As the operating system says it, to Java and to Python."""
_UNREADABLE = (
    "hecksum",
    "STATE_STORE",
    "STREAMING_CHECKPOINT",
    "STREAM_LOG",
    "StreamMetadata",
    "log file",
    "not exist",
)
"""What Spark's errors have in common when a file of a checkpoint is not what it should be; they seldom name it."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
"""Java ends with the first of a chain of errors; it tells the most."""
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
"""What a worker says that was to import something, perhaps us."""
_LINE = re.compile(re.escape(_MARK) + r"([A-Za-z0-9+/=]+)")


class TaskFailure(RuntimeError):
    """An error of ours on its way through Spark."""


@contextmanager
def marked() -> Iterator[None]:
    """Let errors of ours leave a task in the form that `unwrap` reads."""
    try:
        yield
    except HeadwaterError as error:
        facts = {"type": type(error).__name__, "text": str(error)}
        if isinstance(error, UserCodeError):
            key = error.key if isinstance(error.key, str | int | type(None)) else repr(error.key)
            facts["user"] = [error.step, key, error.timestamp, error.cause, error.traceback]  # type: ignore[assignment]
        line = base64.b64encode(json.dumps(facts).encode()).decode()
        raise TaskFailure(f"{error}\n{_MARK}{line}") from None


def explained(job: str, failure: Exception, job_dir: Path) -> HeadwaterError:
    """What made the query fail; if Spark could not read a checkpoint, which file of it and what to do."""
    if any(mark in str(failure) for mark in _UNREADABLE):
        damage = damage_of_newest(job_dir, whole=True)
        if damage is not None:
            return damage
    return unwrap(job, failure, job_dir)


def unwrap(job: str, error: Exception, job_dir: Path) -> HeadwaterError:
    """The error of ours inside one of Spark's; or Spark's own as a job's failure."""
    said = str(error) if isinstance(error, PySparkException) else f"{type(error).__name__}: {error}"
    return found_in(error) or _of_the_engine(job, said, job_dir)


def found_in(error: Exception) -> HeadwaterError | None:
    """The error of ours inside one of Spark's, if there is one."""
    found = _LINE.search(str(error))
    if found is None:
        return None
    facts = json.loads(base64.b64decode(found.group(1)))
    if "user" in facts:
        return UserCodeError(*facts["user"])
    cls = next((c for c in _all(HeadwaterError) if c.__name__ == facts["type"]), HeadwaterError)
    made: HeadwaterError = cls.__new__(cls)
    Exception.__init__(made, facts["text"])
    return made


def reason_in(error: Exception) -> str:
    """What one of Spark's errors says first, and what it says last was the cause, without stacks."""
    first, *_ = str(error).splitlines() or [type(error).__name__]
    return "; ".join([first, *_CAUSE.findall(str(error))[-1:]])


def _of_the_engine(job: str, said: str, job_dir: Path) -> JobError:
    if (missing := _MISSING.search(said)) is not None:
        return JobError.worker_lacks(missing.group(1))
    if _DISK_FULL in said:
        return DiskFull.of(job, str(job_dir), shutil.disk_usage(job_dir).free, said)
    causes = _CAUSE.findall(said)
    return JobError.engine_failed(job, "\n".join([*causes[-1:], said]))


def _all(error: type[HeadwaterError]) -> Iterator[type[HeadwaterError]]:
    """A class of errors and all those below it, wherever they are."""
    yield error
    for below in error.__subclasses__():
        yield from _all(below)
