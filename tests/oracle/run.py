"""Compare Headwater with Apache Flink over random windowed programs; README.md says how to get Flink."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
import traceback
from collections import Counter
from typing import Any

from cases import make_cases
from comparison import same
from flink import HERE, run_flink
from program import run_headwater, ways

RECORDED = HERE / "recorded.jsonl"
SECONDS_A_CASE = 2  # a case takes milliseconds; a trigger that fires without end is a difference like any other


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many cases to make")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same cases")
    parser.add_argument("--show", type=int, default=1, help="how many differing cases to print")
    parser.add_argument("--record", action="store_true", help=f"store small cases of every kind in {RECORDED.name}")
    options = parser.parse_args()
    cases = list(make_cases(options.cases, options.seed))
    begin = time.perf_counter()
    expected = run_flink(cases)
    print(f"{len(cases)} cases on Flink in {time.perf_counter() - begin:.1f} s")
    if options.record:
        return record(cases, expected)
    return compare(cases, expected, options.show)


def compare(cases: list[dict[str, Any]], expected: list[dict[str, Any]], show: int) -> int:
    """Run Headwater too; print what differs and which kinds of cases it concerns."""
    signal.signal(signal.SIGALRM, _interrupt)
    begin = time.perf_counter()
    different: Counter[str] = Counter()
    for case, flink in zip(cases, expected, strict=True):
        for way in ways(case):
            headwater = _attempt(case, way)
            if "error" not in headwater and same(case, flink, headwater):
                continue
            different[f"{way}: {kind_of(case)}"] += 1
            if different.total() <= show:
                print(json.dumps({"way": way, "case": case, "flink": flink, "headwater": headwater}), flush=True)
    print(f"{len(cases)} cases on Headwater in {time.perf_counter() - begin:.1f} s, {different.total()} differ")
    for kind, count in different.most_common():
        print(f"{count:6} {kind}")
    return 1 if different else 0


def _attempt(case: dict[str, Any], way: str) -> dict[str, Any]:
    signal.alarm(SECONDS_A_CASE)
    try:
        return run_headwater(case, way)
    except Exception:
        return {"id": case["id"], "error": traceback.format_exc(limit=-5)}
    finally:
        signal.alarm(0)


def _interrupt(*_: object) -> None:
    raise TimeoutError(f"the case takes more than {SECONDS_A_CASE} s")


def record(cases: list[dict[str, Any]], expected: list[dict[str, Any]]) -> int:
    """Store small cases that emit something worth keeping, until every trait that occurs is among them."""
    lines = [
        (case, json.dumps(case | {"expected": {"fired": flink["fired"], "late": flink["late"]}}))
        for case, flink in zip(cases, expected, strict=True)
        if len(case["actions"]) >= 8 and len(flink["fired"]) >= 3 and (flink["late"] or not case["late"])
    ]
    seen: set[str] = set()
    kept: list[str] = []
    for case, line in sorted(lines, key=lambda item: len(item[1])):
        if not traits_of(case) <= seen:
            seen |= traits_of(case)
            kept.append(line)
    RECORDED.write_text("".join(f"{line}\n" for line in kept))
    print(f"{len(kept)} cases stored in {RECORDED.name}")
    return 0


def traits_of(case: dict[str, Any]) -> set[str]:
    """What a case shows: its function, and each part of its program with the kind of window that it is used on."""
    window, *parts = kind_of(case).split(" | ")
    return {case["function"], window} | {f"{window}: {part.removeprefix('purging ')}" for part in parts}


def kind_of(case: dict[str, Any]) -> str:
    """What a case is about, in words."""
    window, trigger, evictor = case["window"], case["trigger"], case["evictor"]
    words = ["processing-time" if window.get("clock") else "", window["kind"]]
    if "slide" in window:
        words.append("with gaps" if window["slide"] > window["size"] else "overlapping")
    if trigger:
        words += ["| purging" if trigger["purging"] else "|", trigger["kind"]]
    if evictor:
        words += ["| evict", evictor["kind"], "after" if evictor["after"] else "before"]
    words += ["| lateness" if case["lateness"] else "", "| late output" if case["late"] else ""]
    return " ".join(word for word in words if word)


if __name__ == "__main__":
    sys.exit(main())
