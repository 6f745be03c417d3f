"""What a source cannot read goes where the user says, is counted, and is never dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

import headwater as hw


class Numbers(hw.connectors.Source):
    """Every tenth record cannot be read."""

    bounded = True

    def __init__(self, *, has_dead_letters: bool) -> None:
        self.has_dead_letters = has_dead_letters
        self.told: list[dict[str, int]] = []

    def describe(self) -> str:
        return "numbers"

    def check(self, schema: hw.Schema) -> None:
        """Any schema of one number will do."""

    def earliest(self) -> dict[str, int]:
        return {"0": 0}

    def latest(self, start: dict[str, int], elapsed_ms: int) -> dict[str, int]:
        return {"0": 30}

    def read(self, split: str, start: int, end: int) -> Iterator[pa.RecordBatch | hw.connectors.DeadLetters]:
        for i in range(start, end):
            if i % 10:
                yield pa.RecordBatch.from_pydict({"n": [i]})
            elif self.has_dead_letters:
                yield hw.connectors.DeadLetters.of(self, split, i, "it ends in 0", b"%d" % i)

    def published(self, positions: dict[str, int]) -> None:
        self.told.append(positions)


def test_dead_letters_are_a_side_output_of_the_source() -> None:
    env = hw.Environment("letters", engine="local", max_rows_per_epoch=7)
    source, good, bad = Numbers(has_dead_letters=True), hw.connectors.memory(), hw.connectors.memory()
    numbers = env.source(source, "n bigint", name="numbers")
    numbers.sink(good)
    numbers.side_output(hw.DEAD_LETTERS).sink(bad)
    status = env.run().status()
    assert [row.n for row in good.rows] == [i for i in range(30) if i % 10]
    assert [(row.split, row.position, row.value) for row in bad.rows] == [("0", i, b"%d" % i) for i in (0, 10, 20)]
    counters = status.steps["numbers"]
    assert (counters["rows_in"], counters["rows_out"], counters["dead_letters"]) == (30, 27, 3)
    assert [positions["0"] for positions in source.told] == [7, 14, 21, 28, 30]


def test_dead_letters_that_nobody_reads_are_refused() -> None:
    env = hw.Environment("letters", engine="local")
    env.source(Numbers(has_dead_letters=True), "n bigint").sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match="nobody who reads them"):
        env.run()


def test_a_reader_of_dead_letters_that_never_come_is_refused() -> None:
    env = hw.Environment("letters", engine="local")
    source = env.source(Numbers(has_dead_letters=False), "n bigint")
    source.side_output(hw.DEAD_LETTERS).sink(hw.connectors.memory())
    with pytest.raises(hw.GraphError, match=r"has no dead letters.*bad_records"):
        env.run()
