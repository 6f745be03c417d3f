"""The settings of an environment: what they may be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from headwater.durations import Duration, duration_ms
from headwater.errors import GraphError
from headwater.job.watching import JobWatcher
from headwater.restart import RestartStrategy
from headwater.state.keys import MAX_KEY_GROUPS
from headwater.words import Explained

_ENGINES = ("spark", "local")
_MODES = ("exactly_once", "at_least_once")


def check_name(name: str) -> None:
    """Refuse a name that could not be part of a path."""
    if not name or not all(c.isalnum() or c in "_-." for c in name):
        raise GraphError.bad_argument("environment", "needs a name of letters, digits, _, - and .", name, "rename it")


def check_engine(engine: str) -> None:
    """Refuse an engine that there is not."""
    if engine not in _ENGINES:
        raise GraphError.bad_argument("environment", f"runs on {' or '.join(_ENGINES)}", engine, "choose one of them")


def check_sizes(parallelism: int, key_groups: int, max_rows_per_epoch: int, checkpoints_retained: int) -> None:
    """Refuse numbers that no job can have."""
    if not 1 <= key_groups <= MAX_KEY_GROUPS:
        raise GraphError.bad_argument(
            "environment", f"has 1 to {MAX_KEY_GROUPS} key groups", key_groups, "128 is a good number"
        )
    if not 1 <= parallelism <= key_groups:
        raise GraphError.bad_argument(
            "environment",
            f"has a parallelism of 1 to its key groups ({key_groups})",
            parallelism,
            "change one of them",
        )
    if max_rows_per_epoch < 1:
        raise GraphError.bad_argument(
            "environment", "needs max_rows_per_epoch of at least 1", max_rows_per_epoch, "raise it"
        )
    if checkpoints_retained < 2:
        raise GraphError.bad_argument(
            "environment",
            "retains at least 2 checkpoints: the one before the newest is needed until the newest is complete",
            checkpoints_retained,
            "raise checkpoints_retained",
        )


def check_modes(restart: RestartStrategy | None, checkpointing: str) -> None:
    """Refuse what is no restart strategy, and no mode of checkpoints."""
    if restart is not None and not isinstance(restart, RestartStrategy):
        raise GraphError.bad_argument("environment", "needs a restart strategy", restart, "use one of hw.restart")
    if checkpointing not in _MODES:
        raise GraphError.bad_argument(
            "environment", f"checkpoints {' or '.join(_MODES)}", checkpointing, "choose one of them"
        )


def check_watchers(given: JobWatcher | Sequence[JobWatcher]) -> tuple[JobWatcher, ...]:
    """Refuse what is no way out for metrics."""
    watchers = tuple(given) if isinstance(given, Sequence) else (given,)
    for one in watchers:
        if not isinstance(one, JobWatcher):
            raise GraphError.bad_argument(
                "environment",
                "gives its metrics to ways out",
                one,
                "use hw.metrics.prometheus() or hw.metrics.opentelemetry()",
            )
    return watchers


def unaligned_ms(interval_ms: int, *, unaligned: bool | Duration) -> int | None:
    """How long a step may work on rows in an unaligned epoch; None for aligned ones."""
    if unaligned is False:
        return None
    target_ms = interval_ms if unaligned is True else duration_ms(unaligned, what="unaligned")
    if target_ms < 1:
        way_out = "give a time, as unaligned='500 ms', or a longer checkpoint_interval"
        raise GraphError.bad_argument("environment", "needs time for unaligned epochs", f"{target_ms} ms", way_out)
    return target_ms


def check_explained(of: Any) -> Explained:
    """What is explained is one of the things that can be."""
    if of not in get_args(Explained):
        known = " or ".join(map(repr, get_args(Explained)))
        raise GraphError.bad_argument("explain", f"explains {known}", of, "choose one of them")
    found: Explained = of
    return found
