"""What the processes of a bench have resident."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_PAGE_BYTES = 4096


def resident_bytes(ancestor: int, named: str) -> list[int]:
    """The resident memory of each process below another one whose command line has a word, but for the first below it.

    Spark's workers are forked from a daemon that has their command line and does nothing. Pages of mapped files are not
    counted: the system gives them back when others need memory.
    """
    parents, found = {}, {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            number = int(process.name)
            parents[number] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if named in (process / "cmdline").read_text():
                resident, of_files = (process / "statm").read_text().split()[1:3]
                found[number] = (int(resident) - int(of_files)) * _PAGE_BYTES
    return [size for number, size in found.items() if parents[number] in found and _is_below(number, ancestor, parents)]


def _is_below(process: int, ancestor: int, parents: dict[int, int]) -> bool:
    while process in parents and process != ancestor:
        process = parents[process]
    return process == ancestor
