"""How each act of a plan is done, and what must follow from it."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chaos.damage import Damage
from tests.chaos.disk import Disk
from tests.chaos.driver import signal_to
from tests.chaos.plan import DRIVER_KILLS, Act
from tests.chaos.supervised import ChaosFailed, SupervisedDriver

_STEPS = ("PLANNED", "STAGED", "MANIFEST", "COMMITTED", "PUBLISHING", "PUBLISHED", "CLEANED")
_TAKEN_FOR_DEAD_S = 14
"""Longer than the heartbeats of an executor may be missing, see `job.py`."""


class Stage:
    """The job, its disk, and chance."""

    def __init__(self, job: SupervisedDriver, disk: Disk, chance: random.Random, tell: Callable[[str], None]) -> None:
        self._job, self._disk, self._chance, self._tell = job, disk, chance, tell
        self.refused = 0
        """Starts that were refused because of a damaged file, as they must be."""

    def do(self, act: Act) -> None:
        """Wait for a moment, then do it."""
        if act is Act.DAMAGED:
            self._damage()
            return
        self._wait_for_moment()
        if act in DRIVER_KILLS:
            self._kill_driver(act)
        elif act is Act.DISK_FULL:
            self._fill_disk()
        elif act in (Act.STALLED, Act.GHOST):
            self._stall(act)
        else:
            self._signal(signal.SIGKILL, "executors" if act is Act.EXECUTOR else "workers")

    def _wait_for_moment(self) -> None:
        """One time in three at once, in the middle of what the last act left; else around a step of an epoch to come."""
        chance, job = self._chance, self._job
        if chance.random() > 1 / 3:
            published, step = job.published, chance.choice(_STEPS)
            job.wait_for("published epoch", lambda: job.published > published)
            before = job.steps[step]
            job.wait_for(f"epoch that is {step}", lambda: job.steps[step] > before)
        time.sleep(chance.uniform(0, 0.4))

    def _kill_driver(self, act: Act) -> None:
        job = self._job
        if act is Act.DRIVER:
            job.kill()
            return
        if act is Act.DRIVER_PYTHON:
            signal_to(job.driver.pid, signal.SIGKILL)
            job.wait_for("end of a killed driver", lambda: job.driver.exit_code() is not None, limit_s=10, revive=False)
            job.let_go()
            return
        is_running = job.is_running
        job.forget()
        self._signal(signal.SIGKILL, "jvms")
        job.wait_for("end of a driver without its JVM", lambda: job.driver.exit_code() is not None, revive=False)
        if is_running and not any("JVM has died" in word["message"] for word in job.last_words):
            raise ChaosFailed(f"a driver whose JVM was killed does not say so: {job.last_words[-1:]}")
        job.let_go()

    def _stall(self, act: Act) -> None:
        chance = self._chance
        is_ghost = act is Act.GHOST
        stopped = self._signal(signal.SIGSTOP, "executors" if is_ghost else chance.choice(("executors", "jvms")))
        try:
            time.sleep(_TAKEN_FOR_DEAD_S if is_ghost else chance.uniform(0.5, 2.5))
        finally:
            signal_to(stopped, signal.SIGCONT)

    def _signal(self, number: signal.Signals, kind: str) -> int:
        """Send a signal to one of the driver's processes of a kind, as soon as there is one; which it was."""
        sent: list[int] = []

        def is_sent() -> bool:
            found = sorted(getattr(self._job.driver, kind)())
            if found and signal_to(pid := self._chance.choice(found), number):
                sent.append(pid)
            return bool(sent)

        self._job.wait_for(f"process among the {kind}", is_sent)
        return sent[0]

    def _fill_disk(self) -> None:
        """The job must say what is wrong, and go on when there is room again."""
        job = self._job
        job.forget()
        self._disk.fill()
        try:
            job.wait_for("word of the full disk", lambda: any(_is_of_full_disk(word) for word in job.last_words))
            said = next(word["message"] for word in job.last_words if _is_of_full_disk(word))
            self._tell(f"    says: {said.splitlines()[0][:200]}")
            time.sleep(self._chance.uniform(0, 2))
        finally:
            self._disk.free()
        published = job.published
        job.wait_for("epoch after the disk was full", lambda: job.published > published)

    def _damage(self) -> None:
        """The start must be refused, by an error that names the file and the way out; with the copy back it goes on."""
        job = self._job
        damage = Damage.to_newest_file(self._disk.path / "job", self._chance)
        short = damage.path.relative_to(self._disk.path)
        job.forget()
        job.start()
        published = job.published
        job.wait_for(
            "refusal of a damaged checkpoint",
            lambda: job.driver.exit_code() is not None or job.published > published,
            revive=False,
        )
        while job.hear(0) is not None:
            pass
        if not job.last_words:
            self._tell(f"    {short}, {damage.how}: it was not needed")
            damage.mend()
            return
        said = job.last_words[-1]
        self._tell(f"    {short}, {damage.how}: {said['message'].splitlines()[0][:200]}")
        if said.get("failed") != "JobFolderDamaged" or not _names(said["message"], damage.path):
            raise ChaosFailed(f"{damage.path} was {damage.how}, and the error does not say so: {said}")
        self.refused += 1
        job.kill()
        job.forget()
        damage.mend()


def _is_of_full_disk(word: dict[str, Any]) -> bool:
    return "no space left on device" in word["message"].lower()


def _names(message: str, path: Path) -> bool:
    return str(path) in message and "restore" in message
