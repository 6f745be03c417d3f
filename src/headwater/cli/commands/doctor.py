"""`headwater doctor`: whether this machine can run jobs, and what to do where it cannot."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from headwater.cli.exits import Exit
from headwater.cli.output import Json, show_json, show_table
from headwater.errors import HeadwaterError

_NEEDED_MIB, _DISK_MIB = 4096, 1024
_PACKAGES = ("pyspark", "pyarrow", "numpy", "pandas", "duckdb", "sqlglot", "protobuf")
_EXTRAS = {
    "rocksdict": "headwater[disk], for state on disk",
    "confluent-kafka": "headwater[kafka]",
    "psycopg": "headwater[postgres]",
    "starlette": "headwater[ui]",
    "fastavro": "headwater[avro]",
}


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what to do about it."""

    what: str
    verdict: str
    """'ok', 'note' or 'problem'."""
    found: str
    way_out: str = ""


def doctor(
    folder: Annotated[Path, typer.Argument(help="where job folders are to be")] = Path(),
    as_json: Json = False,
) -> None:
    """Look whether this machine can run jobs: Python, Java, packages, memory, disks, sockets.

    The exit code is 1 when something is missing that a job needs.
    """
    found = list(_findings(folder))
    if as_json:
        show_json([asdict(one) for one in found])
    else:
        show_table(
            ("", "what", "found", "what to do"), [(one.verdict, one.what, one.found, one.way_out) for one in found]
        )
    if any(one.verdict == "problem" for one in found):
        raise typer.Exit(Exit.FAILED)


def _findings(folder: Path) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    is_known = (3, 11) <= sys.version_info[:2] <= (3, 14)
    yield Finding("Python", "ok" if is_known else "note", version, "" if is_known else "3.11 to 3.14 are tested")
    yield _java()
    for name in _PACKAGES:
        yield Finding(f"package {name}", "ok", importlib.metadata.version(name))
    for name, extra in _EXTRAS.items():
        yield _extra(name, extra)
    yield _memory()
    yield _cores()
    yield _disk("job folders", folder)
    yield _disk("temporary files", Path(tempfile.gettempdir()))
    yield _locks(folder)
    yield _loopback()


def _java() -> Finding:
    from headwater.spark.java import find_java

    try:
        return Finding("Java", "ok", str(find_java()))
    except HeadwaterError as error:
        found, _, way_out = str(error).partition("; install")
        return Finding("Java", "problem", found, f"install{way_out}")


def _extra(name: str, extra: str) -> Finding:
    try:
        return Finding(f"package {name}", "ok", importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            f"package {name}", "note", "not installed", f"pip install '{extra.partition(',')[0]}', if needed"
        )


def _memory() -> Finding:
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") >> 20
    if there >= _NEEDED_MIB:
        return Finding("memory", "ok", f"{there:,} MiB free")
    way_out = "give Spark less: --config spark.driver.memory=1g"
    return Finding("memory", "note", f"{there:,} MiB free; Spark may take {_NEEDED_MIB:,}", way_out)


def _cores() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Finding("cores", "ok", f"{cores}; a parallelism of {cores} uses them")


def _disk(what: str, folder: Path) -> Finding:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free >> 20
    if not os.access(there, os.W_OK):
        return Finding(f"disk for {what}", "problem", f"{there} cannot be written to", "choose another folder")
    if free < _DISK_MIB:
        return Finding(
            f"disk for {what}", "problem", f"{free:,} MiB free in {there}", "make room, or choose another disk"
        )
    return Finding(f"disk for {what}", "ok", f"{free:,} MiB free in {there}")


def _locks(folder: Path) -> Finding:
    """Jobs lock their folders, which some network file systems cannot."""
    import fcntl

    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return Finding("file locks", "problem", f"{there}: {error}", "keep job folders on another file system")
    return Finding("file locks", "ok", f"files in {there} can be locked")


def _loopback() -> Finding:
    try:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
    except OSError as error:
        return Finding("loopback", "problem", str(error), "let programs listen on 127.0.0.1: Spark does")
    return Finding("loopback", "ok", "127.0.0.1 can be listened on")
