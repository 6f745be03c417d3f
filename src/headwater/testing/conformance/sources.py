"""The rules of the `Source` contract, one function each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from headwater.connectors.contract import DEAD_LETTERS, FOR_EVER_MS, DeadLetters, Positions, Source
from headwater.data.schema import Schema, SchemaLike
from headwater.testing.conformance.verdict import as_shipped, check_words, require

_MOST_CUTS = 16
"""In how many places a split is cut, to see that its pieces make the whole."""


def check_source(
    source: Source, schema: SchemaLike, *, secrets: Sequence[str] = (), folder: Path | None = None
) -> pa.Table:
    """Check a source that has some rows already and gets no new ones meanwhile; gives its rows.

    `secrets` are texts, as a password, that it must not show; `folder` is where it may remember what positions cannot say.
    Raises `NotConforming` at the first rule it breaks.
    """
    declared = Schema.of(schema)
    check_words(source, secrets)
    if folder is not None:
        source.remember_in(folder)
    source.check(declared)
    start = source.earliest()
    _check_positions(source, "earliest()", start)
    end = _end_of(source, start)
    worker = as_shipped(source)
    tables = [_check_split(worker, split, start.get(split, 0), end[split], declared) for split in sorted(end)]
    source.published(end)
    found = pa.concat_tables(tables) if tables else declared.arrow.empty_table()
    require(source, "there are rows to check it with", "all its splits are empty", holds=len(found) > 0)
    return found


def _end_of(source: Source, start: Positions) -> Positions:
    end = source.latest(start, FOR_EVER_MS if source.bounded else 0)
    _check_positions(source, "latest()", end)
    gone = sorted(set(start) - set(end))
    require(source, "latest() has every split of earliest()", f"it lacks {gone}", holds=not gone)
    behind = sorted(split for split, at in end.items() if at < start.get(split, 0))
    require(source, "latest() does not go back", f"splits {behind} end before they start", holds=not behind)
    again = source.latest(end, FOR_EVER_MS if source.bounded else 0)
    back = sorted(split for split, at in end.items() if again.get(split, 0) < at)
    require(source, "latest() does not go back when asked from further on", f"splits {back} did", holds=not back)
    if source.bounded:
        require(source, "latest() of a bounded source stays", f"it went from {end} to {again}", holds=again == end)
    return end


def _check_positions(source: Source, of: str, positions: object) -> None:
    good = isinstance(positions, dict) and all(
        isinstance(split, str) and type(at) is int and at >= 0 for split, at in positions.items()
    )
    require(source, f"{of} gives a number from 0 for each split's name", f"it gave {positions!r}", holds=good)


def _check_split(source: Source, split: str, start: int, end: int, schema: Schema) -> pa.Table:
    rows, letters = _read(source, split, start, end, schema)
    if source.replayable:
        again = _read(source, split, start, end, schema)
        same = (rows, letters) == again
        require(source, "reading a range again gives the same rows", f"split {split!r} gave others", holds=same)
        another = _read(as_shipped(source), split, start, end, schema)
        same = (rows, letters) == another
        require(source, "another process reads the same rows", f"split {split!r} gave others", holds=same)
    pieces = [_read(source, split, *cut, schema) for cut in _cuts(start, end)]
    joined = pa.concat_tables([piece for piece, _ in pieces]) if pieces else rows.slice(0, 0)
    same = joined == rows and [letter for _, some in pieces for letter in some] == letters
    rule = "the pieces of a range make the whole"
    require(source, rule, f"split {split!r} has {len(rows)} rows, its pieces {len(joined)}", holds=same)
    nothing = _read(source, split, end, end, schema)
    require(source, "an empty range has no rows", f"split {split!r} gave some", holds=not len(nothing[0]))
    return rows


def _cuts(start: int, end: int) -> list[tuple[int, int]]:
    step = max(1, (end - start) // _MOST_CUTS)
    return [(at, min(end, at + step)) for at in range(start, end, step)]


def _read(source: Source, split: str, start: int, end: int, schema: Schema) -> tuple[pa.Table, list[object]]:
    """The rows of a range, and its dead letters."""
    batches, letters = [], []
    for found in source.read(split, start, end):
        if isinstance(found, DeadLetters):
            rule = "only a source with has_dead_letters gives dead letters, with the columns of hw.DEAD_LETTERS"
            good = source.has_dead_letters and found.table.schema.equals(DEAD_LETTERS.schema.arrow)
            require(source, rule, f"split {split!r} gave {found.table.schema}", holds=good)
            letters += found.table.to_pylist()
            continue
        rule = "read() gives the declared columns, in their order"
        fits = found.schema.equals(schema.arrow)
        require(source, rule, f"declared is {schema}, split {split!r} gave {found.schema}", holds=fits)
        batches.append(found)
    return pa.Table.from_batches(batches, schema.arrow).combine_chunks(), letters
