"""Joins run on Headwater's harness."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from join_cases import watermarks_before
from window_program import in_windows

import headwater as hw
from headwater.testing import Harness

ROW = "k string, v bigint"
LATE = {side: hw.OutputTag(f"late_{side}", ROW) for side in ("left", "right")}


def ways(case: dict[str, Any]) -> tuple[str, ...]:
    """One row in an epoch, or all rows of an input that come one after the other; and pairs by columns where that can be.

    Processing-time timers fire at the end of an epoch, so what they do is compared row by row. So are pairs by columns,
    for late rows of an epoch update their window together.
    """
    is_clocked = "window" in case and (
        "clock" in case["window"] or "processing" in (case["trigger"] or {}).get("kind", "")
    )
    by_columns = ("by columns",) if case["kind"] == "window_join" else ()
    return ("by row", *by_columns) if is_clocked else ("by row", "by batch", *by_columns)


def seen(case: dict[str, Any], way: str, flink: dict[str, Any]) -> dict[str, Any]:
    """What Flink emitted, as a way of running a case can tell it: what a batch led to belongs to its last row."""
    last = {step: steps[-1] for steps in _epochs(case, way) for step in steps}
    told = _TOLD.get(case["kind"], lambda _, output: output)(case, flink)
    return {output: [[last[step], *row] for step, *row in told[output]] for output in ("fired", "late")}


def run_headwater(case: dict[str, Any], way: str) -> dict[str, Any]:
    """What a case emits on Headwater, in the form that join_cases.py describes."""
    changelogs = case.get("changelogs", ())
    inputs = {side: f"{ROW}, row_kind string" if side in changelogs else ROW for side in LATE}
    harness = Harness(lambda left, right: _BUILDS[case["kind"]](left, right, case, way), inputs)
    fired: list[list[Any]] = []
    late: list[list[Any]] = []
    for steps in _epochs(case, way):
        _act(harness, [case["actions"][step] for step in steps])
        fired += [[steps[-1], *_shown(row, case)] for row in harness.take()]
        late += [
            [steps[-1], side, row.k, row.v, row.timestamp] for side, tag in LATE.items() for row in harness.take(tag)
        ]
    return {"id": case["id"], "fired": fired, "late": late}


def _epochs(case: dict[str, Any], way: str) -> Iterator[list[int]]:
    """The steps that share an epoch: in batches, rows of one input that come one after the other."""
    names = [action[0] for action in case["actions"]]
    for name, steps in groupby(range(len(names)), key=names.__getitem__):
        if way == "by batch" and name in LATE:
            yield list(steps)
        else:
            yield from ([step] for step in steps)


def _act(harness: Harness, actions: list[list[Any]]) -> None:
    match actions:
        case [["left" | "right" as side, *_], *_]:
            rows = [(key, value, *kind) for _, key, value, _, *kind in actions]
            harness.push_all(rows, [timestamp for _, _, _, timestamp, *_ in actions], to=side)
        case [["watermark", timestamp]]:
            harness.watermark(timestamp)
        case [[name, timestamp]] if name.startswith("watermark_"):
            harness.watermark(timestamp, of=name.removeprefix("watermark_"))
        case [[name]] if name.startswith("idle_"):
            harness.idle(of=name.removeprefix("idle_"))
        case [[name]] if name.startswith("end_"):
            harness.end(of=name.removeprefix("end_"))
        case [["clock", timestamp]]:
            harness.advance_to(timestamp)
        case _:
            harness.end()


def _interval(left: hw.Stream, right: hw.Stream, case: dict[str, Any], way: str) -> hw.Stream:
    return left.key_by("k").interval_join(
        right.key_by("k"),
        between=(f"{case['lower']} ms", f"{case['upper']} ms"),
        lower_inclusive=case["lower_inclusive"],
        upper_inclusive=case["upper_inclusive"],
        late_left=LATE["left"] if case["late"] else None,
        late_right=LATE["right"] if case["late"] else None,
    )


def _window_join(left: hw.Stream, right: hw.Stream, case: dict[str, Any], way: str) -> hw.Stream:
    windowed = in_windows(left.join(right).where("k").equal_to("k"), case)
    if way == "by columns":
        return windowed.apply()
    return windowed.apply(lambda one, other: (one.k, one.v, other.v), "k string, v bigint, v_right bigint")


def _cogroup(left: hw.Stream, right: hw.Stream, case: dict[str, Any], way: str) -> hw.Stream:
    def values(lefts: list[Any], rights: list[Any], ctx: hw.WindowContext) -> Iterator[Any]:
        yield ctx.key, [row.v for row in lefts], [row.v for row in rights]

    windowed = in_windows(left.cogroup(right).where("k").equal_to("k"), case)
    return windowed.apply(values, "k string, v array<bigint>, v_right array<bigint>")


def _regular(left: hw.Stream, right: hw.Stream, case: dict[str, Any], way: str) -> hw.Stream:
    ttl = f"{case['ttl']} ms" if case["ttl"] else None
    return _read(left).key_by("k").join_regular(_read(right).key_by("k"), how=case["how"], ttl=ttl)


def _temporal(left: hw.Stream, right: hw.Stream, case: dict[str, Any], way: str) -> hw.Stream:
    return left.key_by("k").temporal_join(_read(right).key_by("k"), how=case["how"], late=LATE["left"])


def _read(stream: hw.Stream) -> hw.Stream:
    """The stream, as a changelog if it says what rows do."""
    return stream.as_changelog() if "row_kind" in stream.schema.names else stream


_BUILDS = {
    "interval": _interval,
    "window_join": _window_join,
    "cogroup": _cogroup,
    "regular": _regular,
    "temporal": _temporal,
}


def _with_times(case: dict[str, Any], flink: dict[str, Any]) -> dict[str, Any]:
    """What a regular join emits has the time of the row that led to it; in Flink SQL, no time at all."""
    return flink | {"fired": [[step, *row, case["actions"][step][3]] for step, *row in flink["fired"]]}


def _without_late_rows(case: dict[str, Any], flink: dict[str, Any]) -> dict[str, Any]:
    """Left rows that are late for a temporal join go to the late output; Flink joins them at the next watermark."""
    before = list(watermarks_before(case))
    fired = [[step, *row] for step, *row in flink["fired"] if row[-1] > before[step]]
    late = [
        [step, *action]
        for step, (action, watermark) in enumerate(zip(case["actions"], before, strict=True))
        if action[0] == "left" and action[3] <= watermark
    ]
    return flink | {"fired": fired, "late": late}


_TOLD = {"regular": _with_times, "temporal": _without_late_rows}


def _shown(row: Any, case: dict[str, Any]) -> list[Any]:
    """A result in the form that join_cases.py describes; that of a regular join with its time too."""
    kind = [getattr(row, "row_kind", "+I")] if case["kind"] == "regular" else []
    return [*kind, row.k, row.v, row.v_right, row.timestamp]
