"""Whether two runs of a case emitted the same, as far as Flink promises an order."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

Case = dict[str, Any]
Output = dict[str, Any]


def same(case: Case, expected: Output, got: Output) -> bool:
    """Whether every action led to the same results, in the same order where Flink promises one, and the same late rows."""
    return expected["late"] == got["late"] and _COMPARABLE[case["kind"]](case, expected) == _COMPARABLE[case["kind"]](
        case, got
    )


def _windows(case: Case, output: Output) -> Any:
    """In order for each key and window; there is none for the rows of sessions that merged."""
    merges = case["window"]["kind"] == "session"
    return _in_order(
        ((step, key, start, end), (sorted(values) if merges else values, timestamp))
        for step, key, start, end, values, timestamp in output["fired"]
    )


def _window_join(case: Case, output: Output) -> Any:
    """In order for each key and window, which the timestamp tells; pairs of merged sessions in any order."""
    if case["window"]["kind"] == "session":
        return _in_any_order(case, output)
    return _in_order(((step, key, timestamp), (left, right)) for step, key, left, right, timestamp in output["fired"])


def _cogroup(case: Case, output: Output) -> Any:
    merges = case["window"]["kind"] == "session"
    return _in_order(
        ((step, key, timestamp), tuple(sorted(side) if merges else side for side in sides))
        for step, key, *sides, timestamp in output["fired"]
    )


def _temporal(case: Case, output: Output) -> Any:
    """In order of arrival for each key."""
    return _in_order(((step, key), row) for step, key, *row in output["fired"])


def _in_order(pairs: Any) -> dict[Any, list[Any]]:
    grouped = defaultdict(list)
    for group, row in pairs:
        grouped[group].append(row)
    return grouped


def _in_any_order(case: Case, output: Output) -> Counter[Any]:
    """Flink goes through the rows it keeps for a key in the order of a hash map."""
    return Counter(map(tuple, output["fired"]))


_COMPARABLE = {
    "windows": _windows,
    "interval": _in_any_order,
    "window_join": _window_join,
    "cogroup": _cogroup,
    "regular": _in_any_order,
    "temporal": _temporal,
}
