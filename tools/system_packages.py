"""Installs a Debian package when this user may, and says how when not."""

from __future__ import annotations

import os
import shutil
import subprocess


def apt_install(*packages: str) -> bool:
    """Install the first of these packages that Debian offers; False when nothing was installed.

    Runs as root or through a sudo that asks no password. HEADWATER_NO_INSTALL=1 forbids it.
    """
    prefix = _root_prefix()
    if os.environ.get("HEADWATER_NO_INSTALL") == "1" or shutil.which("apt-get") is None or prefix is None:
        return False
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y"]
    subprocess.run([*apt, "update"], check=False)
    for package in packages:
        print(f"headwater: installing the Debian package {package}", flush=True)
        if subprocess.run([*apt, "install", "--no-install-recommends", package], check=False).returncode == 0:
            return True
    return False


def _root_prefix() -> list[str] | None:
    if os.geteuid() == 0:
        return []
    if (
        shutil.which("sudo")
        and subprocess.run(["sudo", "-n", "true"], check=False, capture_output=True).returncode == 0
    ):
        return ["sudo", "-n"]
    return None
