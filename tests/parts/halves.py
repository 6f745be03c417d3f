"""A program run in two parts: the first up to an epoch, then a savepoint, then another program from it to the end."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.data.schema import Schema
from headwater.testing import transcript as transcripts
from headwater.testing.transcript import Epoch, Program

Shown = tuple[Any, ...]


class Halves:
    """The epochs of a script, the first of them in one job and the rest in another that goes on from its savepoint."""

    def __init__(self, schemas: dict[str, Schema], epochs: Sequence[Epoch], folder: Path) -> None:
        self._schemas, self._epochs, self._folder = schemas, list(epochs), folder

    def run(
        self, program: Program, cut: int, scales: tuple[int, int], *, after: Program | None = None
    ) -> dict[str, list[Shown]]:
        """What both parts give, by output; `after` is the second program, where it is another one."""
        sinks: dict[str, MemorySink] = {}
        first = self._part(program, scales[0], sinks, epochs=cut)
        path = first.stop(savepoint=self._folder / "savepoint")
        self._part(after or program, scales[1], sinks, from_=path)
        return _shown(sinks)

    def whole(self, program: Program) -> dict[str, list[Shown]]:
        """What the program gives in one piece, on one subtask."""
        sinks: dict[str, MemorySink] = {}
        self._part(program, 1, sinks)
        return _shown(sinks)

    def _part(
        self, program: Program, parallelism: int, sinks: dict[str, MemorySink], epochs: int | None = None, **start: Any
    ) -> Any:
        env = hw.Environment("halves", engine="local", parallelism=parallelism)
        scripts = [transcripts._script(env, name, schema, self._epochs) for name, schema in self._schemas.items()]
        for name, output in program(*scripts).items():
            stream = transcripts.told(output)
            stamped = Schema(stream.schema.arrow.append(pa.field("hw_at", pa.int64())))
            shown = stream.process(transcripts._Stamp(), stamped, name=f"stamp-{name}")
            shown.sink(sinks.setdefault(name, MemorySink()), name=f"output-{name}")
        times = [epoch.now_ms for epoch in self._epochs]
        clock = lambda n: 0 if n < 0 else times[min(n, len(times) - 1)]  # noqa: E731
        return run_epochs(env, epochs, bounded=True, clock=clock, **start)


def _shown(sinks: dict[str, MemorySink]) -> dict[str, list[Shown]]:
    return {name: [tuple(row) for row in sink.rows] for name, sink in sinks.items()}


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
