"""The state backends that a job can choose from."""

from __future__ import annotations

from importlib.util import find_spec

from headwater.budgets import Budget
from headwater.errors import GraphError
from headwater.plan.choices import IN_MEMORY, ON_DISK
from headwater.sizes import size_bytes


def check_state(name: str, memory: str) -> int:
    """Refuse a backend that there is not, and one whose library is not installed; the bytes of the memory it may take."""
    if name not in (IN_MEMORY, ON_DISK):
        raise GraphError.bad_argument(
            "environment",
            f"keeps state in {IN_MEMORY!r} or on {ON_DISK!r}",
            name,
            "choose one of them as state_backend",
        )
    if name == ON_DISK:
        _check_installed(name)
    return size_bytes(memory, what="state_memory")


def check_spills(budgets: dict[str, Budget]) -> dict[str, Budget]:
    """Refuse budgets that are to move state to disk where the library for it is not installed; gives them back."""
    for budget in budgets.values():
        if budget.on_full == "spill":
            _check_installed(budget.on_full)
    return budgets


def _check_installed(wanted: str) -> None:
    if find_spec("rocksdict") is None:
        raise GraphError.bad_argument(
            "environment",
            "keeps state on disk with rocksdict, which is not installed",
            wanted,
            "install headwater[disk] on the driver and on the workers",
        )
