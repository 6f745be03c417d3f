"""Runs the unit tests, which need no Spark, on a second Python. Called by `make test-second` with the one of .venv.

It is the newest of python3.14 to python3.12 on the path, or SECOND_PYTHON, in an environment of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "requirements" / "dev.txt"
NAMES = ("python3.14", "python3.13", "python3.12")
LEFT_OUT = re.compile(r"(pyspark|py4j|mypy|pre-commit|ruff|types-[a-z]+)==")
"""What the unit tests do without: Spark, and what looks at the code."""


def main() -> None:
    """Find it, set its environment up if the pins have changed, and run the tests."""
    given = os.environ.get("SECOND_PYTHON")
    python = given or next(filter(None, map(interpreter, NAMES)), None)
    if python is None:
        print(f"headwater: no second Python: none of {', '.join(NAMES)} is on the path; or name one as SECOND_PYTHON")
        return
    venv = ROOT / ".venv-second"
    ready = venv / ".ready"
    wanted = f"{python}\n{PINS.read_text()}"
    if not ready.exists() or ready.read_text() != wanted:
        uv("venv", "--quiet", "--clear", "--no-python-downloads", "--python", python, str(venv))
        pins = venv / "pins.txt"
        pins.write_text("".join(block for block in blocks(PINS.read_text()) if not LEFT_OUT.match(block)))
        uv("pip", "install", "--quiet", "--python", str(venv), "--no-deps", "--require-hashes", "-r", str(pins))
        ready.write_text(wanted)
    runs = str(venv / "bin" / "python")
    subprocess.run([runs, "--version"], check=True)
    tests = [runs, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "tests/unit", *sys.argv[1:]]
    known = {**os.environ, "PYTHONPATH": str(ROOT / "src")}  # scripts of tests run elsewhere
    sys.exit(subprocess.run(tests, cwd=ROOT, env=known, check=False).returncode)


def interpreter(name: str) -> str | None:
    """Where a Python is, if it is one: a name on the path may stand for a version that is not there."""
    if shutil.which(name) is None:
        return None
    asked = [name, "-c", "import sys; print(sys.executable)"]
    told = subprocess.run(asked, capture_output=True, text=True, check=False)
    return told.stdout.strip() or None if told.returncode == 0 else None


def blocks(pins: str) -> list[str]:
    """Each package with its hashes."""
    return re.findall(r"^[^\s#].*\n(?:[ \t].*\n)*", pins, re.MULTILINE)


def uv(*arguments: str) -> None:
    """Run the environment's uv; its own message is the error."""
    if subprocess.run([sys.executable, "-m", "uv", *arguments], cwd=ROOT, check=False).returncode != 0:
        sys.exit(f"headwater: uv {arguments[0]} failed; its message is above")


main()
