"""Every transcript, cut in two by a savepoint: the second part runs on another number of subtasks, or in another graph."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.parts.halves import Halves
from tests.transcripts.test_transcripts import BY_SUBTASK, CONTENTS, PROGRAMS

import headwater as hw
from headwater.testing import transcript as transcripts
from headwater.testing.transcript import Program, Transcript

MANY = sorted(set(CONTENTS) - BY_SUBTASK)
CUTS: dict[str, tuple[float, tuple[int, int]]] = {
    "early": (0.2, (2, 1)),
    "in the middle": (0.5, (2, 3)),
    "late": (0.9, (1, 8)),
}
"""Where a script is cut, and on how many subtasks its parts run."""


def holds(name: str, folder: Path, cut: float, scales: tuple[int, int], after: Program | None = None) -> None:
    transcript = Transcript.of(CONTENTS[name])
    epochs = transcripts._epochs(transcript, 1)
    halves = Halves(dict(transcript.schemas), epochs, folder)
    found = halves.run(PROGRAMS[transcript.program], max(1, int(len(epochs) * cut)), scales, after=after)
    transcripts._compare(transcripts._expected(transcript), found, transcript, "the two parts", ordered=False)


CASES = [
    pytest.param(name, when, marks=[] if at % len(CUTS) == number else pytest.mark.long)
    for at, name in enumerate(MANY)
    for number, when in enumerate(CUTS)
]
"""Each transcript with one of the cuts, and in `make test-long` with all of them."""


@pytest.mark.parametrize(("name", "when"), CASES)
def test_a_transcript_holds_across_a_savepoint(name: str, when: str, tmp_path: Path) -> None:
    holds(name, tmp_path, *CUTS[when])


def before(program: Program) -> Program:
    """The program with a step in front that moves rows, which puts all others a level deeper."""

    def deeper(*streams: hw.Stream) -> Mapping[str, Any]:
        return program(*(stream.rebalance().map(lambda row: row).with_uid(f"m{i}") for i, stream in enumerate(streams)))

    return deeper


def behind(program: Program) -> Program:
    """The program with a step behind that keeps state of its own and is not shown."""

    def longer(*streams: hw.Stream) -> Mapping[str, Any]:
        outputs = program(*streams)
        main = outputs["main"]
        if main.changelog.key:  # somebody who must know what goes would have others told, too
            main = main.with_row_kind()
        seen = main.map(lambda row: (1,), "n long").key_by("n").agg(rows=hw.count()).with_uid("seen")
        seen.sink(hw.connectors.memory(), name="seen-sink")
        return outputs

    return longer


@pytest.mark.parametrize("name", sorted(CONTENTS))
def test_a_transcript_holds_when_steps_are_added(name: str, tmp_path: Path) -> None:
    program = PROGRAMS[CONTENTS[name]["program"]]
    scale = CONTENTS[name].get("parallelism", 1)
    if name not in BY_SUBTASK:
        holds(name, tmp_path / "before", 0.5, (scale, scale), before(program))
    holds(name, tmp_path / "behind", 0.5, (scale, scale), behind(program))
