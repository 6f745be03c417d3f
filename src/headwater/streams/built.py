"""A user's function that puts a job together, called."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from headwater.streams.environment import Environment


def built(build: Callable[..., Any], name: str) -> tuple[Any, Any]:
    """The environment of a job, and what else its function gives: `build(env)`, or `build()` which gives the environment."""
    if not inspect.signature(build).parameters:
        return build(), None
    env = Environment(name)
    return env, build(env)
