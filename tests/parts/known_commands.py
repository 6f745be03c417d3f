"""Commands in documents: whether `headwater` knows them, and their options."""

from __future__ import annotations

from typer.main import get_command

from headwater.cli.app import app


def unknown(words: list[str]) -> list[str]:
    """What is not there of the words behind `headwater`."""
    command = get_command(app)
    while hasattr(command, "commands"):
        if not words or words[0].startswith("-"):
            break
        if words[0] not in command.commands:
            return [words[0]]
        command, words = command.commands[words[0]], words[1:]
    known = {name for one in command.params for name in one.opts} | {"--help"}
    return [word for word in words if word.startswith("--") and word not in known]
