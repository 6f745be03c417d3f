"""The dashboard of the demo's job, in a process of its own that ends with the demo."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def dashboard(folder: Path) -> Iterator[str | None]:
    """Serve the job in a folder while the block runs; gives the address, or None where its packages are not installed."""
    command = [sys.executable, "-m", "headwater.cli", "ui", "--until-eof", str(folder)]
    with subprocess.Popen(  # noqa: S603  ourselves
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip() or None
        finally:
            server.stdin.close()
