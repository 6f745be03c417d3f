"""Signals at random moments, on both engines: what can be seen is exact each time, and nothing is left running.

Run as a program: random_signals.py FOLDER MOMENTS SEED
"""

from __future__ import annotations

import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import signalled_job
from signalled import Program, job_program

ROWS = 6000
_STOPPED = re.compile(r"headwater: job counts stopped after epoch (\d+) ")


@dataclass(frozen=True)
class Moment:
    """When signals are sent to a program, and which."""

    epochs: int
    """How many are published before; 0 for a program that starts."""
    delay_s: float
    first: signal.Signals
    second: signal.Signals | None
    to_group: bool

    @classmethod
    def by(cls, chance: random.Random, engine: str) -> Moment:
        epochs = chance.choice([0, 1, 1, 2, 4])
        longest_s = {"local": 0.3, "spark": 1.0 if epochs else 8.0}[engine]
        first, second = chance.choices([signal.SIGINT, signal.SIGTERM], k=2)
        is_double = chance.random() < 0.3
        return cls(epochs, chance.random() * longest_s, first, second if is_double else None, chance.random() < 0.5)


def torment(folder: Path, moments: int, seed: int, tell: Callable[[str], None]) -> Counter[str]:
    """A job on Spark that goes on after each of its signals, and local ones that begin anew; how each of them ended."""
    chance, ends = random.Random(seed), Counter[str]()
    on_spark = folder / "spark"
    signalled_job.write_events(on_spark, ROWS)
    for number in range(moments):
        engine = ("local", "spark")[number % 2]
        of_job = on_spark if engine == "spark" else folder / f"local-{number}"
        if engine == "local":
            signalled_job.write_events(of_job, ROWS)
        moment = Moment.by(chance, engine)
        program = job_program(of_job, engine)
        _send(program, moment, chance)
        code = program.end()
        end = _check(of_job, program, moment, code if code >= 0 else 128 - code)
        ends[f"{engine}: {end}"] += 1
        tell(f"{number} {engine} {moment} exit code {code}: {end}")
    signalled_job.build(on_spark, max_rows_per_epoch=ROWS).run(bounded=True)
    rows = signalled_job.expected(ROWS)
    assert signalled_job.published(on_spark) == {"each": rows, "rolled": rows}
    return ends


def _send(program: Program, moment: Moment, chance: random.Random) -> None:
    program.until_said("begins")
    for _ in range(moment.epochs):
        program.until_next_line()
    time.sleep(0.2 + moment.delay_s)
    program.send(moment.first, to_group=moment.to_group)
    if moment.second is not None:
        time.sleep(chance.random())
        if not program.has_ended():
            program.send(moment.second, to_group=moment.to_group)


def _check(folder: Path, program: Program, moment: Moment, code: int) -> str:
    """Whether code, words and output are right; gives the kind of the end."""
    sent = [moment.first] if moment.second is None else [moment.first, moment.second]
    assert code in [128 + number for number in sent], (moment, code, program.said)
    seen = signalled_job.published(folder)
    for rows in seen.values():
        assert len({row[1] for row in rows}) == len(rows), (moment, program.said)
        assert set(rows) <= set(signalled_job.expected(ROWS)), (moment, program.said)
    stopped = _STOPPED.match(program.line)
    if stopped:
        rows = signalled_job.expected(min(ROWS, (int(stopped[1]) + 1) * signalled_job.ROWS_PER_EPOCH))
        assert seen == {"each": rows, "rolled": rows}, (moment, program.said)
        return "stopped, an epoch given up" if "given up" in program.line else "stopped"
    if "ended at once" in program.line:
        return "ended at once"
    if "before it was started" in program.line:  # perhaps after it has published what the last run had committed
        return "ended before it was started"
    assert moment.epochs == 0 or moment.second is not None, (moment, program.said)
    return "ended without a word"


def main() -> None:
    folder, moments, seed = sys.argv[1:]
    print(torment(Path(folder), int(moments), int(seed), lambda line: print(line, flush=True)))


if __name__ == "__main__":
    main()
