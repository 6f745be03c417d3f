"""`headwater demo`: a small job from start to end."""

from __future__ import annotations

import typer


def demo(context: typer.Context) -> None:
    """Show a job that is killed twice and stays exact; its options are shown by `headwater demo -- --help`."""
    from headwater.demo.__main__ import main

    raise typer.Exit(main(context.args))
