"""The server in the foreground: it prints a command to try, and serves until it is told to end."""

from __future__ import annotations

import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headwater.errors import JobError
from headwater.eventlog import EventLog
from headwater.push.server import serve

_TOKEN = "HEADWATER_PUSH_TOKEN"  # noqa: S105  the variable's name


def serve_in_foreground(
    log: EventLog, create: Sequence[tuple[str, str]], *, partitions: int, host: str, port: int
) -> None:
    """Serve until Ctrl-C or SIGTERM, and then answer who has asked; topics to create are made unless they are there."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for name, schema in create:
        log.create_topic(name, schema, partitions, exist_ok=True)
    token, shown = _token(log.path)
    with serve(log.path, token=token, host=host, port=port) as server, suppress(KeyboardInterrupt):
        topic = next(iter(log.topics()), "TOPIC")
        sys.stdout.write(
            f"rows for the event log {log.path}, topics: {', '.join(log.topics()) or 'none yet'}\n"
            f"curl -H \"Authorization: Bearer {shown}\" -H 'Content-Type: application/json' \\\n"
            f"     {server.url}/topics/{topic} -d '[{{…}}, {{…}}]'\n"
        )
        sys.stdout.flush()
        signal.pause()


def _token(log: Path) -> tuple[str, str]:
    """The token, and how to name it in a shell: from the environment, or from a file that only its owner reads."""
    if given := os.environ.get(_TOKEN, "").strip():
        return given, f"${_TOKEN}"
    file = log / ".push-token"
    log.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:  # noqa: PTH123
            out.write(secrets.token_urlsafe(24))
    token = file.read_text().strip()  # an editor ends it with a line end, which no header can hold
    if not token:
        raise JobError.not_supported(f"{file} has no token in it", "remove it, and a new one is made")
    return token, f"$(cat {file})"
