"""Creates .venv from the pinned requirements. Called by `make setup` with any Python; standard library only."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

from system_packages import apt_install

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"


def main() -> None:
    """Check Python, create the environment, install what is pinned, then the project itself."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if sys.version_info < (3, 11):  # noqa: UP036 - this file is what tells an older Python's user
        sys.exit(
            f"headwater needs Python 3.11 or newer; {sys.executable} is Python {version}; "
            "name another one: make setup PYTHON=python3.11"
        )
    if importlib.util.find_spec("ensurepip") is None and not apt_install(f"python{version}-venv"):
        sys.exit(
            "headwater needs Python's venv module; this Debian Python came without it; "
            f"install it: sudo apt-get install python{version}-venv"
        )
    if not (VENV / "bin" / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=True)

    # Build backends come first, with hashes, because pyspark is built from source: nothing unpinned may build it.
    print("headwater: installing the pinned packages into .venv (1.1 GB; one or two minutes)", flush=True)
    pip("--require-hashes", "-r", "requirements/build.txt")
    pip("--require-hashes", "--no-build-isolation", "-r", "requirements/dev.txt")
    pip("--no-index", "--no-deps", "--no-build-isolation", "--editable", ".")


def pip(*arguments: str) -> None:
    """Run the environment's pip; its own message is the error."""
    install = [str(VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.run([*install, *arguments], check=False, cwd=ROOT).returncode != 0:
        sys.exit(f"headwater: pip install {' '.join(arguments)} failed; its message is above")


main()
