"""Settings that who loads a program gives for the environments which it makes meanwhile: a command line, or a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from headwater.errors import JobError
from headwater.job.watching import JobWatcher
from headwater.words import EngineName


@dataclass(frozen=True)
class Overrides:
    """What takes the place of what a program says; what is None, the program says."""

    job_dir: Path | None = None
    parallelism: int | None = None
    engine: EngineName | None = None
    spark_config: dict[str, str] = field(default_factory=dict)
    watchers: tuple[JobWatcher, ...] = ()
    """Who watches the job beside those that the program names."""


_NONE = Overrides()
_LOADED: ContextVar[tuple[str, Overrides] | None] = ContextVar("headwater_loaded", default=None)


@contextmanager
def loading(program: str, overrides: Overrides) -> Iterator[None]:
    """While a program is loaded: its environments get these settings, and none may start a job."""
    token = _LOADED.set((program, overrides))
    try:
        yield
    finally:
        _LOADED.reset(token)


def overrides() -> Overrides:
    """Those of the program that is being loaded."""
    loaded = _LOADED.get()
    return _NONE if loaded is None else loaded[1]


def check_may_start() -> None:
    """Refuse to start a job in the middle of loading it."""
    if (loaded := _LOADED.get()) is not None:
        raise JobError.started_while_loaded(loaded[0])
