"""What a case is about, and whether it is worth storing."""

from __future__ import annotations

from typing import Any

from join_cases import watermarks_before

Case = dict[str, Any]


def kind_of(case: Case) -> str:
    """What a case is about, in words: the program, then what else there is to it, after bars."""
    return " | ".join((_PROGRAMS[case["kind"]](case), *_input(case)))


def traits_of(case: Case) -> set[str]:
    """What a case shows: its program, each other part together with the program that it is used in, and its input."""
    program, *parts = _PROGRAMS[case["kind"]](case).split(" | ")
    traits = {program} | {f"{program}: {part.removeprefix('purging ')}" for part in parts}
    return traits | set(_input(case)) | {case.get("function", program)}


def worth_storing(case: Case, emitted: dict[str, Any]) -> bool:
    """Whether a case is neither trivial nor long, and shows late rows if it has an output for them."""
    shows_late = bool(emitted["late"]) or not case.get("late", False)
    return len(case["actions"]) >= 8 and 3 <= len(emitted["fired"]) <= 100 and shows_late


def _windowed(case: Case) -> str:
    window, trigger, evictor = case["window"], case["trigger"], case["evictor"]
    words = ["processing-time" if window.get("clock") else "", window["kind"]]
    if "slide" in window:
        words.append("with gaps" if window["slide"] > window["size"] else "overlapping")
    if trigger:
        words += ["| purging" if trigger["purging"] else "|", trigger["kind"]]
    if evictor:
        words += ["| evict", evictor["kind"], "after" if evictor["after"] else "before"]
    words += ["| lateness" if case["lateness"] else "", "| late output" if case.get("late") else ""]
    return " ".join(word for word in words if word)


def _interval(case: Case) -> str:
    lower, upper = case["lower"], case["upper"]
    where = "at a point" if lower == upper else "after" if lower >= 0 else "before" if upper <= 0 else "around"
    edges = "".join(("[" if case["lower_inclusive"] else "(", "]" if case["upper_inclusive"] else ")"))
    return f"{where} {edges}" + (" | late output" if case["late"] else "")


def _regular(case: Case) -> str:
    inputs = " and ".join(case["changelogs"]) + " changelog" if case["changelogs"] else "inserts"
    return f"{case['how']}, {inputs}" + (" | ttl" if case["ttl"] else "")


def _temporal(case: Case) -> str:
    versions = "changelog of versions" if case["changelogs"] else "versions"
    return f"{case['how']}, {versions}" + (" | late left rows" if _has_late_left_rows(case) else "")


def _ttl(case: Case) -> str:
    """The state, and what rows do to it, before and after a time at which something may have expired."""
    parts, waited = {}, False
    for action in case["actions"]:
        if action[0] == "clock":
            waited = True
        else:
            parts[f"{action[4]}, {'later' if waited else 'at once'}"] = None
    return " | ".join((f"{case['state']} from the last {case['update']}", *sorted(parts)))


_PROGRAMS = {
    "windows": _windowed,
    "interval": _interval,
    "window_join": _windowed,
    "cogroup": _windowed,
    "regular": _regular,
    "temporal": _temporal,
    "ttl": _ttl,
}


def _input(case: Case) -> list[str]:
    """What the two inputs of a join are like."""
    if case["kind"] in {"windows", "ttl"}:
        return []
    names = {action[0] for action in case["actions"]}
    rows = [action for action in case["actions"] if action[0] in {"left", "right"}]
    parts = [f"no {side} rows" for side in ("left", "right") if side not in names]
    parts += ["watermarks apart"] if names & {"watermark_left", "watermark_right"} else []
    parts += ["idle inputs"] if names & {"idle_left", "idle_right"} else []
    parts += ["an end before the other"] if names & {"end_left", "end_right"} else []
    parts += ["null keys"] if any(row[1] is None for row in rows) else []
    parts += ["before 1970"] if any(row[3] < 0 for row in rows) else []
    return parts


def _has_late_left_rows(case: Case) -> bool:
    actions = zip(case["actions"], watermarks_before(case), strict=True)
    return any(action[0] == "left" and action[3] <= watermark for action, watermark in actions)
