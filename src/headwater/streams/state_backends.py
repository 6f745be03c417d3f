"""The state backends that a job can choose from."""

from __future__ import annotations

from importlib.util import find_spec

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
    if name == ON_DISK and find_spec("rocksdict") is None:
        raise GraphError.bad_argument(
            "environment",
            "keeps state on disk with rocksdict, which is not installed",
            name,
            "install headwater[disk] on the driver and on the workers",
        )
    return size_bytes(memory, what="state_memory")
