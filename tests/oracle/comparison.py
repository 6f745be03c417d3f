"""Whether two runs of a case emitted the same, as far as Flink promises an order."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import groupby
from operator import itemgetter
from typing import Any

Case = dict[str, Any]
Output = dict[str, Any]


def same(case: Case, way: str, expected: Output, got: Output) -> bool:
    """Whether every action led to the same results, in the same order where Flink promises one, and the same late rows."""
    comparable = _COMPARABLE[case["kind"]]
    return expected["late"] == got["late"] and comparable(case, way, expected) == comparable(case, way, got)


def _windows(case: Case, way: str, output: Output) -> Any:
    """In order for each key and window; there is none for the rows of sessions that merged."""
    merges = case["window"]["kind"] == "session"
    return _in_order(
        ((step, key, start, end), (sorted(values) if merges else values, timestamp))
        for step, key, start, end, values, timestamp in output["fired"]
    )


def _window_join(case: Case, way: str, output: Output) -> Any:
    """In order for each key and window, which the timestamp tells; pairs of merged sessions and by columns in any."""
    if case["window"]["kind"] == "session" or way == "by columns":
        return _in_any_order(case, way, output)
    return _in_order(((step, key, timestamp), (left, right)) for step, key, left, right, timestamp in output["fired"])


def _cogroup(case: Case, way: str, output: Output) -> Any:
    merges = case["window"]["kind"] == "session"
    return _in_order(
        ((step, key, timestamp), tuple(sorted(side) if merges else side for side in sides))
        for step, key, *sides, timestamp in output["fired"]
    )


def _regular(case: Case, way: str, output: Output) -> Any:
    """Row by row every change, in order for each row that is met; by batch what the result then holds.

    Flink goes through the rows that one row meets in the order of a hash map. How many changes a batch is told by is
    free, but nothing may be taken back that is not there.
    """
    if way == "by batch":
        return _contents(output)
    met = {"left": 3, "right": 2}
    return _in_order(((step, row[met[case["actions"][step][0]]]), row) for step, *row in output["fired"])


def _contents(output: Output) -> dict[int, Any]:
    """What a changelog comes to after each step that changes it, and what it took back before it was there."""
    contents = {}
    holds: Counter[Any] = Counter()
    for step, changes in groupby(output["fired"], key=itemgetter(0)):
        before, missing = +holds, set()
        for _, kind, *row, _ in changes:
            holds[tuple(row)] += 1 if kind.startswith("+") else -1
            missing |= set(-holds)
        if missing or +holds != before:
            contents[step] = +holds, missing
    return contents


def _temporal(case: Case, way: str, output: Output) -> Any:
    """In order of arrival for each key and time; we emit in the order of time, Flink in that of arrival."""
    return _in_order(((step, key, timestamp), row) for step, key, *row, timestamp in output["fired"])


def _ttl(case: Case, way: str, output: Output) -> Any:
    """What each row reads; Flink goes through a map in the order of a hash map."""
    in_order = case["state"] != "map"
    return [
        [*row, found if in_order or not isinstance(found, list) else sorted(found)]
        for *row, found, _ in output["fired"]
    ]


def _in_order(pairs: Any) -> dict[Any, list[Any]]:
    grouped = defaultdict(list)
    for group, row in pairs:
        grouped[group].append(row)
    return grouped


def _in_any_order(case: Case, way: str, output: Output) -> Counter[Any]:
    """Flink goes through the rows it keeps for a key in the order of a hash map."""
    return Counter(map(tuple, output["fired"]))


_COMPARABLE = {
    "windows": _windows,
    "interval": _in_any_order,
    "window_join": _window_join,
    "cogroup": _cogroup,
    "regular": _regular,
    "temporal": _temporal,
    "ttl": _ttl,
}
