"""The examples in docstrings do what they say, on the local engine."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pyarrow as pa
import pytest

import headwater as hw

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in (SOURCE / "headwater").rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name: str) -> None:
    module = importlib.import_module(name)
    known = {"hw": hw, "pa": pa, "Environment": hw.Environment}  # what a reader of the docstring has at hand
    found = doctest.testmod(module, extraglobs={k: v for k, v in known.items() if k not in vars(module)})
    assert found.attempted > 0
    assert found.failed == 0


def test_the_handles_that_users_hold_have_examples() -> None:
    assert {"headwater.streams.stream", "headwater.streams.environment", "headwater.eventlog.log"} <= set(MODULES)
