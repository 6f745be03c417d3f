"""What happens to the job, and in which order, from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum


class Act(StrEnum):
    """Something that is done to the job."""

    WORKER = "worker killed"
    EXECUTOR = "executor killed"
    DRIVER = "driver killed"
    DRIVER_PYTHON = "driver's Python killed"
    DRIVER_JVM = "driver's JVM killed"
    DAMAGED = "newest checkpoint file damaged"
    """While the driver is down: right after it was killed."""
    DISK_FULL = "disk full"
    STALLED = "storage slow"
    """A process stands still for a moment, in the middle of whatever it was writing."""
    GHOST = "executor taken for dead"
    """It stands still until Spark has given it up, then goes on writing."""


DRIVER_KILLS = (Act.DRIVER, Act.DRIVER_PYTHON, Act.DRIVER_JVM)
KILLS = (Act.WORKER, Act.EXECUTOR, *DRIVER_KILLS)


@dataclass(frozen=True)
class Plan:
    """The acts of a run. It ends with the kill of a driver; the driver after it reads the input to its end."""

    acts: tuple[Act, ...]

    @classmethod
    def of(cls, kills: int, seed: int) -> Plan:
        """`kills` kills, of which a fifth are of the driver, among other faults. Every kind of fault is there once."""
        chance = random.Random(seed)
        drivers = max(1, kills // 5)
        variants = [DRIVER_KILLS[number % len(DRIVER_KILLS)] for number in range(drivers - 1)]
        rest = kills - drivers
        below = [Act.EXECUTOR] * (rest // 2) + [Act.WORKER] * (rest - rest // 2)
        faults = (
            [Act.DISK_FULL] * max(1, kills // 25) + [Act.STALLED] * max(1, kills // 8) + [Act.GHOST] * (kills // 20)
        )
        middle = [*variants, *below, *faults]
        chance.shuffle(middle)
        acts = [*middle, Act.DRIVER]
        downs = [at for at, act in enumerate(acts) if act is Act.DRIVER]
        for at in sorted(chance.sample(downs, min(len(downs), max(1, kills // 20))), reverse=True):
            acts.insert(at + 1, Act.DAMAGED)
        return cls(tuple(acts))

    def without(self, act: Act) -> Plan:
        """The plan when an act is not possible here."""
        return Plan(tuple(one for one in self.acts if one is not act))
