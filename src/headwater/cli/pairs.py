"""Options that name something and its value."""

from __future__ import annotations

from collections.abc import Iterable

import typer


def pairs_of(option: str, given: Iterable[str] | None) -> dict[str, str]:
    """What is given as NAME=VALUE, by name."""
    found = {}
    for one in given or ():
        name, is_pair, value = one.partition("=")
        if not is_pair or not name:
            raise typer.BadParameter(f"{option} takes NAME=VALUE; got {one!r}")
        found[name] = value
    return found
