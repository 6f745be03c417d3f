"""Savepoints at the command line: `python -m headwater.savepoints show PATH`, or `check PATH module:env`."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from headwater.errors import HeadwaterError
from headwater.savepoints.tables import check, read
from headwater.streams.environment import Environment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; gives the exit code: that of the upgrade, or 2 when there is nothing to look at."""
    parser = argparse.ArgumentParser(prog="python -m headwater.savepoints", description="Look at savepoints.")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="what a savepoint holds")
    show.add_argument("path")
    upgrade = commands.add_parser(
        "check", help="whether a program can go on from a savepoint: 0 yes, 1 no, 3 if it may give state up"
    )
    upgrade.add_argument("path")
    upgrade.add_argument("program", help="module:name of an hw.Environment, or of a function that makes one")
    upgrade.add_argument("--renamed", action="append", default=[], metavar="OLD=NEW", help="as in env.run(renamed=)")
    given = parser.parse_args(arguments)
    try:
        if given.command == "show":
            sys.stdout.write(f"{read(given.path)}\n")
            return 0
        renamed = dict(one.split("=", 1) for one in given.renamed)
        found = check(given.path, _environment(given.program), renamed)
    except (HeadwaterError, ImportError, AttributeError, TypeError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{found}\n")
    return found.exit_code


def _environment(name: str) -> Environment:
    module, is_named, attribute = name.partition(":")
    if not is_named:
        raise ValueError(f"a program is named as module:name; got {name!r}")
    sys.path.insert(0, str(Path.cwd()))
    found = getattr(importlib.import_module(module), attribute)
    env = found if isinstance(found, Environment) else found()
    if not isinstance(env, Environment):
        raise TypeError(f"{name} is no hw.Environment and makes none; it gives a {type(env).__name__}")
    return env


if __name__ == "__main__":
    sys.exit(main())
