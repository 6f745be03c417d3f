"""`verify`: the same job over the same rows in many ways, which must all come to the same."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from headwater.epoch.steps import EpochStep
from headwater.testing.verification.failure import FailedRun, UnfitInput, VerificationFailed
from headwater.testing.verification.inputs import Input, inputs_of
from headwater.testing.verification.program import Build, program
from headwater.testing.verification.runs import Course, epochs_of, outputs_of, slices_text
from headwater.testing.verification.tables import Result, result_of
from headwater.words import Variation

_FEW_EPOCHS = 4
"""Of a run that crashes in each, or that stops after one of them."""
_MOST_SUBTASKS = 4


@dataclass(frozen=True)
class _Chances:
    """What courses are made of."""

    inputs: Mapping[str, Input]
    parallelism: int
    runs: int
    seed: int

    def of(self, variation: Variation, run: int) -> random.Random:
        return random.Random(f"{self.seed} {variation} {run}")  # noqa: S311  not for secrets


@dataclass(frozen=True)
class _Said:
    """What a user says of outputs, by name: columns."""

    keys: Mapping[str, tuple[str, ...]]
    order: Mapping[str, tuple[str, ...]]

    def check(self, results: Mapping[str, Result]) -> None:
        for said in (self.keys, self.order):
            for output, columns in said.items():
                known = results[output].names if output in results else None
                if known is None or not {*columns} <= {*known}:
                    raise UnfitInput.no_such_key(output, columns, {uid: one.names for uid, one in results.items()})


@dataclass(frozen=True)
class Verified(Mapping[str, list[Any]]):
    """What a job gave, by output and in every run alike: the rows that are there in the end, in some order."""

    results: Mapping[str, Result] = field(repr=False)
    runs: Mapping[Variation, int]
    """How many runs there were of each variation."""
    kept_in_order: Sequence[str] = ()
    """Sources whose rows came in the order given in all runs, as nothing says how far they may be out of it."""

    def __getitem__(self, output: str) -> list[Any]:
        return [tuple(row) for row in self.results[output].rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def verify(
    build: Build,
    input: Any,  # noqa: A002  the word users expect
    *,
    seed: int = 0,
    variations: Sequence[Variation] = get_args(Variation),
    runs: int = 3,
    parallelism: int = 2,
    keys: Mapping[str, str | Sequence[str]] | None = None,
    order: Mapping[str, str | Sequence[str]] | None = None,
) -> Verified:
    """Run a job over the same rows in many ways, and raise `VerificationFailed` for the first that gives something else.

    `build` is what `headwater run` takes: `build(env)`, or `build()` that gives an environment. Its sources get the rows
    of `input`, by name, or those of the only one, as rows or tables; its sinks and the streams that it returns are what is
    compared: the rows that are there in the end, in any order, and of a changelog the table that it makes. In an output
    of `keys` a row replaces the one with its key. In one of `order` the rows of a key come in the same order, too, as long
    as those of the input do.

    The same `seed` gives the same runs. Everything runs in this process, without Java.

    >>> def build(env):
    ...     sales = env.from_rows([], "shop string, n long, t long", hw.Watermarks.bounded("t", "5 ms"), name="sales")
    ...     return sales.key_by("shop").window(hw.tumbling("10 ms")).agg(n=hw.sum("n")).select("shop", "n")
    >>> verified = verify(build, [("a", 1, 3), ("b", 5, 9), ("a", 2, 5), ("a", 4, 17)])
    >>> sorted(verified["result"])
    [('a', 3), ('a', 4), ('b', 5)]
    """
    unknown = [one for one in variations if one not in _COURSES]
    if unknown:
        raise ValueError(f"verify knows the variations {', '.join(_COURSES)}; got {unknown[0]!r}; choose among them")
    inputs = inputs_of(program(build, parallelism).graph, input)
    chances = _Chances(inputs, parallelism, runs, seed)
    batch = Course("one batch", {uid: one.at_once() for uid, one in inputs.items()}, parallelism)
    said = _Said(_columns(keys), _columns(order))
    expected = _results(build, batch, said)
    said.check(expected)
    made: dict[Variation, int] = {}
    for variation in (one for one in _COURSES if one in variations):
        for course in _COURSES[variation](chances):
            _compare(build, expected, said, course, FailedRun(variation, course.words, seed))
            made[variation] = made.get(variation, 0) + 1
    return Verified(expected, made, [uid for uid, one in inputs.items() if one.times is None])


def _columns(given: Mapping[str, str | Sequence[str]] | None) -> dict[str, tuple[str, ...]]:
    return {output: (key,) if isinstance(key, str) else tuple(key) for output, key in (given or {}).items()}


def _results(build: Build, course: Course, said: _Said) -> dict[str, Result]:
    return {uid: result_of(sink, said.keys.get(uid, ())) for uid, sink in outputs_of(build, course).items()}


def _compare(build: Build, expected: Mapping[str, Result], said: _Said, course: Course, run: FailedRun) -> None:
    try:
        found = _results(build, course, said)
    except Exception as error:
        raise VerificationFailed.failed(run, error) from error
    for output, result in expected.items():
        missing, unexpected = result.difference(found[output])
        if missing or unexpected:
            raise VerificationFailed.differs(run, output, result.names, missing, unexpected)
        columns = () if run.variation == "arrival" else said.order.get(output, ())
        pair = result.in_order(columns), found[output].in_order(columns)
        if columns and pair[0] != pair[1]:
            raise VerificationFailed.out_of_order(run, output, result.names, pair)


def _again(chances: _Chances) -> Iterator[Course]:
    """What is not the same when nothing is varied depends on a clock, on chance or on what an earlier run has left."""
    scripts = {uid: one.at_once() for uid, one in chances.inputs.items()}
    yield Course("one batch once more", scripts, chances.parallelism)


def _slices(chances: _Chances) -> Iterator[Course]:
    for run in range(chances.runs):
        chance = chances.of("slices", run)
        scripts = {uid: one.sliced(chance) if run else one.evenly() for uid, one in chances.inputs.items()}
        yield Course(f"in epochs of {slices_text(scripts)}", scripts, chances.parallelism)


def _arrival(chances: _Chances) -> Iterator[Course]:
    if all(one.times is None for one in chances.inputs.values()):
        return
    for run in range(chances.runs):
        chance = chances.of("arrival", run)
        scripts = {uid: one.shuffled(chance) for uid, one in chances.inputs.items()}
        words = f"rows shuffled within the bounds of watermarks, in epochs of {slices_text(scripts)}"
        yield Course(words, scripts, chances.parallelism)


def _crashes(chances: _Chances) -> Iterator[Course]:
    for step in EpochStep:
        chance = chances.of("crashes", step.value)
        scripts = {uid: one.sliced(chance, _FEW_EPOCHS) for uid, one in chances.inputs.items()}
        words = f"a crash at {step.name} of every epoch, and epochs of {slices_text(scripts)}"
        yield Course(words, scripts, chances.parallelism, crash_at=step)


def _savepoints(chances: _Chances) -> Iterator[Course]:
    for run in range(chances.runs):
        chance = chances.of("savepoints", run)
        scripts = {uid: one.evenly(_FEW_EPOCHS) for uid, one in chances.inputs.items()}
        after = chance.randrange(max(1, epochs_of(scripts) - 1))
        other = chance.choice([p for p in range(1, _MOST_SUBTASKS + 1) if p != chances.parallelism])
        words = (
            f"saved after epoch {after} on {chances.parallelism} subtasks and gone on from there on {other}, in epochs of "
            f"{slices_text(scripts)}"
        )
        yield Course(words, scripts, chances.parallelism, saved_after=after, goes_on_with=other)


_COURSES: dict[Variation, Callable[[_Chances], Iterator[Course]]] = {
    "again": _again,
    "slices": _slices,
    "arrival": _arrival,
    "crashes": _crashes,
    "savepoints": _savepoints,
}
"""From what is simplest to understand on, as the first difference is shown."""
