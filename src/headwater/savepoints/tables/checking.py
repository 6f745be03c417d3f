"""Upgrades tried out: what a program would make of a savepoint, without starting anything."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from headwater.savepoints.files import Savepoint
from headwater.savepoints.fitting import Program, Upgrade, fit
from headwater.savepoints.renaming import Renaming
from headwater.streams.environment import Environment


def check(path: str | os.PathLike[str], env: Environment, renamed: Mapping[str, str] | None = None) -> Upgrade:
    """What becomes of each state of the savepoint when `env.run(from_=path, renamed=renamed)` goes on from it.

    It reads descriptions and the heads of files: neither sources and sinks nor functions are opened.
    """
    return fit(Savepoint.open(Path(path)), Program(env.plan()), Renaming.of(renamed))
