"""Every transcript on Spark: those that leave the clock alone together in a few graphs, the others each in its own."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from tests.transcripts import test_transcripts
from tests.transcripts.test_transcripts import CONTENTS, MODULES, PROGRAMS

import headwater as hw
from headwater.connectors.memory import MemorySink
from headwater.testing import transcript as transcripts
from headwater.testing.transcript import Transcript, run_on_engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Outputs = dict[str, dict[str, MemorySink]]
Play = Callable[[tuple[str, ...]], Outputs | Exception]
SIZE = 14
"""How many transcripts one graph has: as many as make an epoch no slower than its start."""
ALL = {name: Transcript.of(content) for name, content in CONTENTS.items()}
WITH_A_CLOCK = sorted(name for name, one in ALL.items() if "clock" in [kind for kind, _ in one.actions])
"""Each needs a query of its own. Every third runs by default, all in `make test-long`: what the clock does on Spark is the same
for all of them, and what each says of it holds on the local engine by default."""


def scale(name: str) -> int:
    return max(2, ALL[name].parallelism)


def graphs() -> Iterator[tuple[str, ...]]:
    """Those of one parallelism, with as many epochs as each other."""
    names = sorted(set(ALL) - set(WITH_A_CLOCK), key=lambda name: (scale(name), len(epochs(name)), name))
    for _, alike in itertools.groupby(names, scale):
        some = tuple(alike)
        for at in range(0, len(some), SIZE):
            yield some[at : at + SIZE]


def epochs(name: str) -> list[transcripts.Epoch]:
    return transcripts._epochs(ALL[name], None)


@pytest.fixture(scope="module", autouse=True)
def _programs_go_to_the_workers(spark: SparkSession) -> None:
    from pyspark import cloudpickle

    for module in (test_transcripts, *MODULES):
        cloudpickle.register_pickle_by_value(module)


@pytest.fixture(scope="module")
def play(spark: SparkSession) -> Play:
    """Runs a graph the first time it is asked for; the outputs of each of its transcripts, or what the run failed with."""

    @functools.cache
    def outcome(names: tuple[str, ...]) -> Outputs | Exception:
        env = hw.Environment("transcripts", spark=spark, parallelism=scale(names[0]))
        outputs = {}
        for name in names:
            program = PROGRAMS[ALL[name].program]
            outputs[name] = transcripts._add(env, ALL[name], program, epochs(name), prefix=f"{name}.")
        try:
            env.run(bounded=True, clock=lambda _: 0)
        except Exception as error:
            return error
        return outputs

    return outcome


@pytest.mark.parametrize(("graph", "name"), [pytest.param(g, name, id=name) for g in graphs() for name in g])
def test_a_transcript_holds_on_spark(graph: tuple[str, ...], name: str, play: Play) -> None:
    outputs = play(graph)
    if isinstance(outputs, Exception):
        raise outputs
    transcripts._compare_run(ALL[name], outputs[name], "the run on Spark", ordered=False)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if at % 3 == 0 else pytest.mark.long) for at, name in enumerate(WITH_A_CLOCK)]
)
def test_a_transcript_with_a_clock_holds_on_spark(name: str, spark: SparkSession) -> None:
    program = PROGRAMS[ALL[name].program]
    run_on_engine(ALL[name], program, engine="spark", spark=spark, parallelism=scale(name))
