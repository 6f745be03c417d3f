"""A program run in two parts: the first up to an epoch, then a savepoint, then another program from it to the end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.schema import Schema
from headwater.testing import transcript as transcripts
from headwater.testing.transcript import Epoch, Program

Shown = tuple[Any, ...]


class Halves:
    """The epochs of a script, the first of them in one job and the rest in another that goes on from its savepoint."""

    def __init__(self, schemas: dict[str, Schema], epochs: Sequence[Epoch], folder: Path) -> None:
        self._schemas, self._epochs, self._folder = schemas, list(epochs), folder
        self._sinks: dict[str, MemorySink] = {}

    def run(
        self,
        program: Program,
        cut: int,
        scales: tuple[int, int],
        *,
        after: Program | None = None,
        **start: Any,
    ) -> dict[str, list[Shown]]:
        """What both parts give, by output; `after` is the second program, where it is another one."""
        self._part(program, scales[0], cut)
        self._part(after or program, scales[1], None, from_=self._folder / "savepoint", **start)
        return {name: [tuple(row) for row in sink.rows] for name, sink in self._sinks.items()}

    def _part(self, program: Program, parallelism: int, epochs: int | None, **start: Any) -> None:
        env = hw.Environment("halves", engine="local", parallelism=parallelism)
        scripts = [transcripts._script(env, name, schema, self._epochs) for name, schema in self._schemas.items()]
        for name, stream in program(*scripts).items():
            stamped = Schema(stream.schema.arrow.append(pa.field("hw_at", pa.int64())))
            shown = stream.process(transcripts._Stamp(), stamped, name=f"stamp-{name}")
            shown.sink(self._sinks.setdefault(name, MemorySink()), name=f"output-{name}")
        times = [epoch.now_ms for epoch in self._epochs]
        job = run_epochs(
            env, epochs, bounded=True, clock=lambda n: times[min(n, len(times) - 1)] if n >= 0 else 0, **start
        )
        if epochs is not None:
            job.stop(savepoint=self._folder / "savepoint")


def run_epochs(env: hw.Environment, epochs: int | None, **start: Any) -> Any:
    """Run a job for so many epochs, or to its end; it is stopped then, and has not failed."""
    started, done = threading.Event(), 0
    jobs: list[Any] = []

    def on_step(step: hw.EpochStep, epoch: int) -> None:
        nonlocal done
        if step is hw.EpochStep.CLEANED:
            done += 1
            if done == epochs:
                started.wait()
                jobs[0]._stopping.set()

    jobs.append(env.start(on_step=on_step, **start))
    started.set()
    jobs[0].wait()
    return jobs[0]
