"""Debian's Chromium, driven by Playwright: found, or installed where that is allowed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tools.system_packages import apt_install

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = (
    "--no-sandbox",  # CI runs as root, and the pages are our own
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",  # it would ask for hosts that a closed network does not have
    "--disable-component-update",
    "--disable-sync",
)


class ChromiumMissing(Exception):
    """There is no browser here, and none can be installed."""


def chromium() -> str:
    """Where the browser is; installs it unless HEADWATER_NO_INSTALL=1 forbids that."""
    with (Path(tempfile.gettempdir()) / "headwater-chromium.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        found = shutil.which("chromium")
        if found is None and apt_install("chromium"):
            found = shutil.which("chromium")
    if found is None:
        may = (
            "HEADWATER_NO_INSTALL forbids it" if os.environ.get("HEADWATER_NO_INSTALL") == "1" else "this user may not"
        )
        raise ChromiumMissing(f"there is no chromium on the path, and it could not be installed from Debian ({may})")
    return found


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield started
        finally:
            started.close()
