"""`python -m headwater.push LOG --create orders "user string, amount double"`: a server to push rows to with curl."""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from headwater.errors import HeadwaterError, JobError
from headwater.eventlog import EventLog
from headwater.push.server import serve

_TOKEN = "HEADWATER_PUSH_TOKEN"  # noqa: S105  the variable's name


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM, and then answer who has asked; 2 when there is nothing to serve."""
    parser = argparse.ArgumentParser(prog="python -m headwater.push", description=__doc__)
    parser.add_argument("log", help="the folder of the event log")
    parser.add_argument(
        "--create", nargs=2, action="append", default=[], metavar=("TOPIC", "SCHEMA"), help="unless it is there"
    )
    parser.add_argument("--partitions", type=int, default=1, help="of topics that are created")
    parser.add_argument("--host", default="127.0.0.1", help="beyond this machine only behind something that encrypts")
    parser.add_argument("--port", type=int, default=8080)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        log = EventLog(given.log)
        for name, schema in given.create:
            log.create_topic(name, schema, given.partitions, exist_ok=True)
        token, shown = _token(log.path)
        with serve(log.path, token=token, host=given.host, port=given.port) as server, suppress(KeyboardInterrupt):
            topic = next(iter(log.topics()), "TOPIC")
            sys.stdout.write(
                f"rows for the event log {log.path}, topics: {', '.join(log.topics()) or 'none yet'}\n"
                f"curl -H \"Authorization: Bearer {shown}\" -H 'Content-Type: application/json' \\\n"
                f"     {server.url}/topics/{topic} -d '[{{…}}, {{…}}]'\n"
            )
            sys.stdout.flush()
            signal.pause()
    except (HeadwaterError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


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


if __name__ == "__main__":
    sys.exit(main())
