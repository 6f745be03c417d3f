"""`headwater ui`: jobs in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def ui(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="where to look for job folders; by default in this one")
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 is any that is free")] = 0,
    savepoints: Annotated[
        Path | None, typer.Option(help="where savepoints go; by default to 'savepoints' beside the job folder")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the address as JSON: link, url, token")] = False,
    until_eof: Annotated[bool, typer.Option("--until-eof", hidden=True)] = False,
) -> None:
    r"""Show jobs in a browser, running and ended ones; prints the address, with a token in it. Until Ctrl-C.

    Needs pip install 'headwater\[ui]'.
    """
    from headwater.web.foreground import serve_in_foreground

    serve_in_foreground(folders or [Path()], port=port, savepoints=savepoints, until_eof=until_eof, as_json=as_json)
