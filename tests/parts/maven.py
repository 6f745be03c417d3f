"""Jars that tests and benchmarks run, fetched with Maven into a cache, with all that they depend on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

_FETCH_S = 300


class MavenUnreachable(Exception):
    """Maven, or the repository it asks, is not there; says which."""


def jars(name: str, *artifacts: str) -> Path:
    """The folder with some artifacts, each 'group:artifact:version'; fetched when `name` is not in the cache yet."""
    folder = _cache() / name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            made = Path(place) / "jars"
            _fetch(artifacts, Path(place), made)
            try:
                made.rename(folder)
            except OSError:  # another run was faster
                if not folder.exists():
                    raise
    return folder


def _fetch(artifacts: tuple[str, ...], place: Path, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise MavenUnreachable(f"Maven is needed to fetch {', '.join(artifacts)}, and mvn is not on the PATH")
    pom = place / "pom.xml"
    pom.write_text(_pom(artifacts))
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}", "-DincludeScope=runtime"]
    command = [maven, "--quiet", "--batch-mode", "--file", str(pom), *goal]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False)
    except subprocess.TimeoutExpired:
        raise MavenUnreachable(f"Maven did not fetch {', '.join(artifacts)} within {_FETCH_S} s") from None
    if done.returncode != 0:
        said = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stdout + done.stderr)
        raise MavenUnreachable(f"Maven cannot fetch {', '.join(artifacts)}: {said.strip()[:500]}")


def _pom(artifacts: tuple[str, ...]) -> str:
    needed = [
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in (map(escape, artifact.split(":")) for artifact in artifacts)
    ]
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>headwater</groupId><artifactId>jars</artifactId><version>1</version>"
        f"<dependencies>{''.join(needed)}</dependencies></project>"
    )


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headwater"
