"""`make fuzz N=20000 [TARGET=x] [SEED=7] [CASE=3]`: stored files, rows and requests are damaged and read again.

Each target has a process of its own, of which memory is bounded and which is ended when it stands still, so that a crash
or a hang has a number too. Cases that have failed once, which `seeds.txt` keeps, come first.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.cases import LONGEST_S, Found, kept_seeds, run
from tests.fuzz.targets import TARGETS

_ROOM_BYTES = 1 << 30
"""What a reader may take beyond what the process has when it begins."""
_START_S = 120.0
_QUICK = Path("/dev/shm")
"""Where files cost no disk."""
_SHOWN = 2
"""Of failures that look alike."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--target", choices=sorted(TARGETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    parser.add_argument("--from", type=int, dest="start", default=0, help=argparse.SUPPRESS)
    parser.add_argument("--progress", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.progress:
        return _child(given)
    failed = False
    for name in [given.target] if given.target else sorted(TARGETS):
        failed |= _supervised(name, given)
    return int(failed)


def _supervised(name: str, given: argparse.Namespace) -> bool:
    """Run a target in a process of its own, again behind a case that has ended it; tells whether anything failed."""
    failed, start = False, 0
    with tempfile.NamedTemporaryFile(prefix="hw-fuzz-") as progress:
        while start < given.count:
            command = [sys.executable, "-m", "tests.fuzz.run", "--target", name, "--progress", progress.name]
            command += ["--count", str(given.count), "--seed", str(given.seed), "--from", str(start)]
            command += [] if given.case is None else ["--case", str(given.case)]
            child = subprocess.Popen(command)
            stood_still = _wait(child, Path(progress.name))
            if child.returncode in (0, 1) and not stood_still:
                return failed or child.returncode == 1
            failed = True
            seed, case = (int(part) for part in Path(progress.name).read_text().split() or (given.seed, 0))
            what = "it does not come to an end" if stood_still else f"the process ended with {child.returncode}"
            print(Found(name, seed, case, what), flush=True)
            if given.case is not None or seed != given.seed:
                return True
            start = case + 1
    return failed


def _wait(child: subprocess.Popen[bytes], progress: Path) -> bool:
    """Until the process has ended, or has been at one case for too long and is ended."""
    last, since, limit_s = "", time.monotonic(), _START_S
    while child.poll() is None:
        time.sleep(0.2)
        now = progress.read_text()
        if now != last:
            last, since, limit_s = now, time.monotonic(), 3 * LONGEST_S
        elif time.monotonic() - since > limit_s:
            child.kill()
            child.wait()
            return True
    return False


def _child(given: argparse.Namespace) -> int:
    faulthandler.enable()
    told = os.open(given.progress, os.O_WRONLY)

    def tell(seed: int, case: int) -> None:
        os.pwrite(told, f"{seed:<20} {case:<20}".encode(), 0)

    with tempfile.TemporaryDirectory(prefix="hw-fuzz-", dir=_QUICK if _QUICK.is_dir() else None) as folder:
        target = TARGETS[given.target](Path(folder))
        target.read(target.whole())
        _bound_memory()
        began, failed, again = time.monotonic(), Counter[str](), []
        if given.case is None and not given.start:
            again = [(seed, [case]) for name, seed, case in kept_seeds() if name == given.target]
        cases = [given.case] if given.case is not None else range(given.start, given.count)
        for seed, numbers in [*again, (given.seed, cases)]:
            for found in run(target, seed, numbers, lambda case, seed=seed: tell(seed, case)):
                if isinstance(found, Found):
                    failed[found.kind] += 1
                    if failed[found.kind] <= _SHOWN:
                        print(found, flush=True)
                elif numbers is cases:
                    print(
                        f"{given.target}: {len(cases):,} mutations of seed {seed}: {found.refused:,} refused, "
                        f"{found.right:,} right, {failed.total():,} failed, {time.monotonic() - began:.0f} s",
                        flush=True,
                    )
    return int(failed.total() > 0)


def _bound_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + _ROOM_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    sys.exit(main())
