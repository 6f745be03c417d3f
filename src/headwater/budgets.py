"""How much state a step may keep: what `state_budget=` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, get_args

from headwater.errors import GraphError
from headwater.sizes import size_bytes, size_text
from headwater.words import OnFull


@dataclass(frozen=True)
class Budget:
    """How much state a step may keep on all subtasks together, and what becomes of the job when it has more."""

    size_bytes: int
    on_full: OnFull = "fail"

    def describe(self) -> str:
        """In words."""
        return f"{size_text(self.size_bytes)}, then {self.on_full}"


def budget(size: str, *, on_full: OnFull = "fail") -> Budget:
    """How much state a step may keep, for `state_budget=` of an environment.

    `state_budget={"totals": hw.budget("2 GB", on_full="spill")}` gives one to the step whose uid is totals.

    It is the size of its entries as columns, not compressed, as `job.explain_state()` tells it, on all subtasks together.
    From 80 % on there is a warning with the forecast. When there is more, the job warns again and goes on ("warn"), stops
    before the epoch is committed that needed more ("fail"), or moves the step's working state to the workers' disks and
    goes on ("spill").
    """
    if on_full not in get_args(OnFull):
        known = ", ".join(map(repr, get_args(OnFull)))
        raise GraphError.bad_argument("budget", f"is on_full= one of {known}", on_full, "choose one of them")
    bytes_allowed = size_bytes(size, what="a state budget")
    if not bytes_allowed:
        raise GraphError.bad_argument("budget", "needs more than nothing", size, "write budget('2 GB')")
    return Budget(bytes_allowed, on_full)


def budgets_of(given: Any) -> dict[str, Budget]:
    """Budgets by the uids of steps, of what an environment is given: sizes, or budgets."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise GraphError.bad_argument(
            "environment", "takes state_budget= by the uids of steps", given, 'write {"totals": "2 GB"}'
        )
    return {uid: one if isinstance(one, Budget) else budget(one) for uid, one in given.items()}
