"""Random windows and joins, cut in two by a savepoint: what both parts give is what the run in one piece gives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import join_cases
import join_program
import pytest
import window_cases
import window_program
from tests.parts.halves import Halves

import headwater as hw
from headwater.data.batch import MAX_TIMESTAMP, MIN_TIMESTAMP
from headwater.testing.transcript import Epoch

KINDS = {"windows": window_cases.windows} | {
    kind: getattr(join_cases, kind) for kind in ("interval", "window_join", "cogroup", "regular", "temporal")
}


def epochs_of(case: dict[str, Any], inputs: list[str]) -> list[Epoch]:
    """An epoch for each action; idleness is left out, which a script cannot say."""
    marks, now, found = dict.fromkeys(inputs, MIN_TIMESTAMP), 0, []
    for name, *given in case["actions"]:
        rows: list[Any] = []
        what, _, of = name.partition("_")
        of = [of] if of else inputs
        if what in ("watermark", "end"):
            marks = {**marks, **{one: max(marks[one], given[0] if given else MAX_TIMESTAMP) for one in of}}
        elif what == "clock":
            now = max(now, given[0])
        elif what != "idle":
            key, value, at, *kind = given
            row = {"k": key, "v": value, **({"row_kind": kind[0]} if kind else {})}
            rows = [(name if name in inputs else inputs[0], at, row)]
        found.append(Epoch(rows, marks, now))
    return found


def program_of(case: dict[str, Any], way: str, *streams: hw.Stream) -> Mapping[str, hw.Stream]:
    if case["kind"] == "windows":
        step = window_program.build(streams[0], case, way)
        tags = {"late": window_program.LATE} if case["late"] else {}
    else:
        step = join_program._BUILDS[case["kind"]](*streams, case, way)
        tags = {side: tag for side, tag in join_program.LATE.items() if case["kind"] == "interval" and case["late"]}
    return {"main": step, **{name: step.side_output(tag) for name, tag in tags.items()}}  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", KINDS)
def test_a_random_program_goes_on_from_a_savepoint(kind: str, seed: int, tmp_path: Path) -> None:
    random = Random(f"savepoint/{seed}")
    case = {"id": f"savepoint-{seed}", "kind": kind} | KINDS[kind](random)
    changelogs = case.get("changelogs", [])
    inputs = ["rows"] if kind == "windows" else ["left", "right"]
    plain = "k string, v bigint"
    schemas = {name: hw.Schema.of(f"{plain}, row_kind string" if name in changelogs else plain) for name in inputs}
    epochs = epochs_of(case, inputs)
    ways = (window_program if kind == "windows" else join_program).ways(case)
    for number, way in enumerate(way for way in ways if way != "by batch"):
        halves = Halves(schemas, epochs, tmp_path / str(number))
        program = partial(program_of, case, way)
        whole = halves.whole(program)
        found = halves.run(
            program, random.randint(1, max(1, len(epochs) - 1)), (random.randint(1, 3), random.randint(1, 4))
        )
        assert {name: Counter(map(repr, rows)) for name, rows in found.items()} == {
            name: Counter(map(repr, rows)) for name, rows in whole.items()
        }
