"""What `verify` raises: a job whose results depend on how it runs, and input that shows nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headwater.streams.showing import table_text

_SHOWN = 10
"""Rows of a difference: enough to see what is wrong."""


@dataclass(frozen=True)
class FailedRun:
    """The run that gave something else."""

    variation: str
    words: str
    seed: int


class VerificationFailed(AssertionError):
    """A job that gives something else when it runs in another way: where, and the first rows that differ."""

    variation = ""
    """What was varied."""
    run = ""
    """How the run went, in words."""
    seed = 0
    output: str | None = None
    """The output that differs; None where the job failed."""
    missing: Sequence[Any] = ()
    """Rows that are in the output of the one batch only."""
    unexpected: Sequence[Any] = ()
    """Rows that are in the output of this run only."""

    @classmethod
    def _of(cls, run: FailedRun, found: str) -> VerificationFailed:
        again = f'to repeat it: verify(build, input, variations=["{run.variation}"], seed={run.seed})'
        error = cls(f"{run.variation}: {found}\nthe run: {run.words}\n{again}")
        error.variation, error.run, error.seed = run.variation, run.words, run.seed
        return error

    @classmethod
    def differs(
        cls, run: FailedRun, output: str, names: Sequence[str], missing: Sequence[Any], unexpected: Sequence[Any]
    ) -> VerificationFailed:
        rows = [*((1, 0, *row) for row in missing), *((0, 1, *row) for row in unexpected)]
        rows.sort(key=lambda row: (*map(repr, row[2:]), -row[0]))
        more = f"{len(rows) - _SHOWN} more rows differ" if len(rows) > _SHOWN else None
        table = table_text(["one batch", "this run", *names], rows[:_SHOWN], more)
        error = cls._of(run, f"output {output!r} is not what it is when all input is one batch\n\n{table}")
        error.output, error.missing, error.unexpected = output, missing, unexpected
        return error

    @classmethod
    def out_of_order(
        cls, run: FailedRun, output: str, names: Sequence[str], pair: tuple[Sequence[Any], Sequence[Any]]
    ) -> VerificationFailed:
        place = next(at for at, (one, other) in enumerate(zip(*pair, strict=True)) if one != other)
        table = table_text(["", *names], [("one batch", *pair[0][place]), ("this run", *pair[1][place])], None)
        error = cls._of(run, f"output {output!r} has the rows of a key in another order\n\n{table}")
        error.output = output
        return error

    @classmethod
    def failed(cls, run: FailedRun, error: Exception) -> VerificationFailed:
        first, *_ = str(error).splitlines() or [""]
        return cls._of(run, f"the job fails, and does not when all input is one batch: {type(error).__name__}: {first}")


class UnfitInput(ValueError):
    """Input that a job cannot be verified with."""

    @classmethod
    def not_by_name(cls, sources: Sequence[str]) -> UnfitInput:
        named = ", ".join(sources) or "none"
        return cls(f"input of a job with several sources is given by name; it has {named}; write {{'name': rows, …}}")

    @classmethod
    def other_sources(cls, given: Sequence[str], sources: Sequence[str]) -> UnfitInput:
        return cls(
            f"input names every source of the job and no other; got {', '.join(given) or 'none'}, and it has "
            f"{', '.join(sources) or 'none'}; name them so"
        )

    @classmethod
    def late_row(cls, source: str, row: int, late_ms: int, bound_ms: int) -> UnfitInput:
        return cls(
            f"rows of source {source!r} are out of order by at most its bound of {bound_ms} ms; row {row} comes "
            f"{late_ms} ms after a later one, and whether such a row is late depends on where epochs end; leave it out, or "
            "raise the bound"
        )

    @classmethod
    def no_output(cls, build: str) -> UnfitInput:
        return cls(f"{build} gives output; it has no sink and returns no stream; return the stream to be compared")

    @classmethod
    def no_environment(cls, build: str, given: object) -> UnfitInput:
        return cls(
            f"{build}() without parameters gives an hw.Environment; got {given!r}; return it, or take it: build(env)"
        )

    @classmethod
    def no_such_key(cls, output: str, columns: Sequence[str], known: Mapping[str, Sequence[str]]) -> UnfitInput:
        outputs = "; ".join(f"{name} with {', '.join(names)}" for name, names in known.items())
        return cls(
            f"keys and order name columns of outputs; got {output!r}: {', '.join(columns)}; the job has {outputs}"
        )
