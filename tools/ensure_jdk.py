"""Finds a Java that runs Spark, or installs one. Called by `make setup` with the environment's Python."""

from __future__ import annotations

import sys

from system_packages import apt_install

from headwater.errors import JavaMissing
from headwater.spark.java import find_java

# Debian 12 has 17, Debian 13 has 21: the first that exists is taken.
PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless")


def main() -> None:
    """Print the Java in use; install one only when none is found."""
    try:
        home = find_java()
    except JavaMissing as missing:
        if not apt_install(*PACKAGES):
            sys.exit(f"headwater: {missing}")
        home = find_java()
    print(f"headwater: Java is {home}")


main()
