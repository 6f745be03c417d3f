"""One case after the other: each gets its own random numbers, so that it can be repeated without those before it."""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import perf_counter

from tests.fuzz.target import Target, WrongRows
from tests.fuzz.watch import WATCH, Outside

LONGEST_S = 10.0
"""A case that takes longer is a failure; most take about a millisecond."""
_SEEDS = Path(__file__).with_name("seeds.txt")


@dataclass(frozen=True)
class Found:
    """A case that neither was refused nor gave what was stored."""

    target: str
    seed: int
    case: int
    what: str

    @property
    def kind(self) -> str:
        """What failures of the same reason have in common: where it was raised, or how it begins."""
        places = [line for line in self.what.splitlines() if line.startswith("  File ")]
        return " ".join(places[-2:]) or self.what[:24]

    def __str__(self) -> str:
        return (
            f"{self.target}: {self.what}\nrepeat it: make fuzz TARGET={self.target} SEED={self.seed} CASE={self.case}"
        )


@dataclass
class Tally:
    """What became of the cases of a target."""

    refused: int = 0
    right: int = 0


def run(
    target: Target, seed: int, cases: Iterable[int], before: Callable[[int], None] = lambda _: None
) -> Iterator[Found | Tally]:
    """Every case that fails, and at the end the tally; `before` each case its number is told."""
    target.read(target.whole())
    gc.collect()  # temporary folders of the target's own go now, not while a reader is watched
    tally = Tally()
    for case in cases:
        before(case)
        what = _outcome(target, Random(f"{target.name}:{seed}:{case}"), tally)
        if what is not None:
            yield Found(target.name, seed, case, what)
    target.read(target.whole())
    yield tally


def _outcome(target: Target, random: Random, tally: Tally) -> str | None:
    """What is wrong with what became of a case; None when nothing is."""
    mutant = target.mutant(random)
    began = perf_counter()
    try:
        with WATCH.below(target.folder):
            target.read(mutant)
        tally.right += 1
    except target.refusals as error:
        if not any(subject in str(error) for subject in target.subjects):
            return f"the refusal does not say what is wrong with what: {error!s:.600}"
        tally.refused += 1
    except WrongRows as error:
        return f"wrong rows: {error}"
    except (Exception, Outside):
        return f"neither refused nor right:\n{traceback.format_exc(limit=-6)}"
    took_s = perf_counter() - began
    return f"it took {took_s:.1f} s" if took_s > LONGEST_S else None


def kept_seeds() -> list[tuple[str, int, int]]:
    """The cases that have failed once: target, seed and number."""
    lines = (line.partition("#")[0].split() for line in _SEEDS.read_text().splitlines())
    return [(target, int(seed), int(case)) for target, seed, case in filter(None, lines)]
