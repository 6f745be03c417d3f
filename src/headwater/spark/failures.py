"""Errors across Spark, which carries what a task raises to the driver as text inside text. This keeps ours whole.

An error is written down as a `Failure` and made again from it in the driver, so that the user sees step, key, time and own
traceback, and nothing of Spark's. A task leaves it beside the plan of its run (`ShippedJob.attempt`). What is raised
elsewhere, or may pass, travels as a marked line in the text of the exception.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

from headwater.errors import HeadwaterError, JobError, UserCodeError
from headwater.spark.errors import DiskFull
from headwater.versioned import Versioned

_LOG = logging.getLogger("headwater.spark")
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
_WRAPPING = re.compile(
    r"^(An error occurred while calling \S+\n: )?(\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: )?"
)
"""How errors of Spark's, and of the way to it, begin when another error is meant."""
_LOST = re.compile(r"most recent failure: Lost task [^:]*: (.+)")
"""What a task has failed with."""
_PACKAGE = re.compile(r"\b(?:[a-z]\w*\.)+(?=[A-Z]\w*(?:Exception|Error)\b)")
"""What Java puts before the names of errors."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
"""Java ends with the first of a chain of errors; it tells the most."""
_MISSING = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
"""What a worker says that was to import something, perhaps us."""
_RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)+(\S.*)$", re.MULTILINE)
"""What Python raised, below where it did."""
_LINE = re.compile(re.escape(_MARK) + r"([0-9a-f]{16}):([A-Za-z0-9+/=]+)")


class TaskFailure(RuntimeError):
    """An error of ours on its way through Spark."""


@dataclass(frozen=True)
class Failure(Versioned):
    """An error of ours, written down."""

    error: str
    """Its type, with the module that has it."""
    text: str
    user: tuple[Any, ...] = ()
    """Of one that user code has raised: step, key, timestamp, cause and traceback."""

    @classmethod
    def of(cls, error: HeadwaterError) -> Self:
        if not isinstance(error, UserCodeError):
            return cls(_name_of(error), str(error))
        key = error.key if isinstance(error.key, str | int | None) else repr(error.key)
        user = (error.step, key, error.timestamp, error.cause, error.traceback)
        return cls(_name_of(error), str(error), user)

    def made_again(self) -> HeadwaterError:
        """The error, with the same text."""
        if self.user:
            error: HeadwaterError = UserCodeError(*self.user)
        else:
            cls = _class_of(self.error)
            error = cls.__new__(cls)
        error.args = (self.text,)
        return error


@contextmanager
def marked() -> Iterator[None]:
    """Let errors of ours leave a call of Spark's in the form that `found_in` reads."""
    try:
        yield
    except HeadwaterError as error:
        written = base64.b64encode(Failure.of(error).to_text().encode())
        raise TaskFailure(f"{error}\n{_MARK}{_digest(written)}:{written.decode()}") from None


def explained(job: str, failure: Exception, job_dir: Path) -> HeadwaterError:
    """What made the query fail; if Spark could not read a checkpoint, which file of it and what to do."""
    _LOG.debug("job %r failed: %s", job, failure)
    if any(mark in str(failure) for mark in _UNREADABLE):
        from headwater.job.checkpoints.listing import damage_of_newest

        damage = damage_of_newest(job_dir, whole=True)
        if damage is not None:
            return damage
    return unwrap(job, failure, job_dir)


def unwrap(job: str, error: Exception, job_dir: Path) -> HeadwaterError:
    """The error of ours inside one of Spark's; or Spark's own as a job's failure."""
    if isinstance(error, HeadwaterError):
        return error
    found = found_in(error)
    if found is not None:
        return found
    if (missing := _MISSING.search(str(error))) is not None:
        return JobError.worker_lacks(missing.group(1))
    if _DISK_FULL in str(error):
        return DiskFull.of(job, str(job_dir), shutil.disk_usage(job_dir).free)
    return JobError.engine_failed(job, reason_in(error))


def found_in(error: Exception) -> HeadwaterError | None:
    """The error of ours inside one of Spark's, if there is one. User code may have put the like of a mark before it."""
    for digest, written in reversed(_LINE.findall(str(error))):
        if digest == _digest(written.encode()):
            return Failure.from_text(base64.b64decode(written).decode(), "an error of a task").made_again()
    return None


def reason_in(error: Exception) -> str:
    """What one of Spark's errors says first, and what it says was the cause, without stacks."""
    said = str(error)
    first, *_ = _WRAPPING.sub("", said).splitlines() or [""]
    if not type(error).__module__.startswith(("pyspark.", "py4j.")):
        first = f"{type(error).__name__}: {first}"
    first, *_ = [*_RAISED.findall(said)[-1:], *_LOST.findall(said)[-1:], first]
    causes = [cause for cause in _CAUSE.findall(said)[-1:] if cause not in first]
    return _PACKAGE.sub("", "; ".join([first, *causes]))


def _digest(written: bytes) -> str:
    return hashlib.sha256(written).hexdigest()[:16]


def _name_of(error: HeadwaterError) -> str:
    return f"{type(error).__module__}.{type(error).__name__}"


def _class_of(name: str) -> type[HeadwaterError]:
    """The class of an error: of ours wherever it is, of others' if the driver knows it."""
    module, _, cls = name.rpartition(".")
    home = import_module(module) if module.startswith("headwater.") else sys.modules.get(module)
    found = getattr(home, cls, None)
    return found if isinstance(found, type) and issubclass(found, HeadwaterError) else HeadwaterError
