"""The dashboard in the foreground, and beside a job that is run."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from headwater.errors import JobError
from headwater.web.server import serve

_NICE = 10
"""Whoever looks at jobs gives way to them."""


def serve_in_foreground(
    folders: Sequence[Path], *, port: int, savepoints: Path | None, until_eof: bool, as_json: bool
) -> None:
    """Print the address, and serve until Ctrl-C or SIGTERM; or until standard input ends, with who started this."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    os.nice(_NICE)
    shown = logging.StreamHandler()
    shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.getLogger("headwater.web").addHandler(shown)
    with serve(folders, port=port, savepoints=savepoints) as dashboard, suppress(KeyboardInterrupt):
        told = {"link": dashboard.link, "url": dashboard.url, "token": dashboard.token}
        sys.stdout.write(f"{json.dumps(told) if as_json else dashboard.link}\n")
        sys.stdout.flush()
        if until_eof:
            sys.stdin.buffer.read()
        else:
            signal.pause()


@contextmanager
def beside(job_dir: Path, *, port: int, says: TextIO | None = None) -> Iterator[None]:
    """Serve the dashboard of a job in a process of its own, which takes nothing from the job's, and ends with it.

    The address goes to `says`, or to standard output. A dashboard that cannot be served says why itself.
    """
    command = [sys.executable, "-m", "headwater.cli", "ui", "--until-eof", "--port", str(port), str(job_dir)]
    with subprocess.Popen(  # noqa: S603  ourselves
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            link = server.stdout.readline()
            if not link:
                raise JobError.no_dashboard()
            print(link, end="", file=says, flush=True)
            yield
        finally:
            server.stdin.close()
