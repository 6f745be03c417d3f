from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from headwater.shapes import fits, misfit


@dataclass(frozen=True)
class Inner:
    n: int
    pair: tuple[int, str] | None = None


@dataclass(frozen=True)
class Outer:
    inner: Mapping[str, Inner] = field(default_factory=dict)
    rest: Any = None


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int),
        (1, float),
        ("a", str),
        (None, str | None),
        ([1], list[int]),
        ((1, "a"), tuple[int, str]),
        ({}, dict[str, int]),
        ("a", Literal["a", "b"]),
    ],
)
def test_what_is_declared_fits(value: Any, hint: Any) -> None:
    assert fits(value, hint)


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (True, int),
        (1 << 63, int),
        (1.5, int),
        ("\ud800", str),
        (1, str | None),
        ("a", list[str]),
        ([None], list[int]),
        ((1,), tuple[int, str]),
        ({"a": "b"}, dict[str, int]),
        ({1: 1}, dict[str, int]),
        ("c", Literal["a", "b"]),
    ],
)
def test_what_is_not_declared_does_not(value: Any, hint: Any) -> None:
    assert not fits(value, hint)


def test_the_field_is_named() -> None:
    assert misfit(Outer({"a": Inner(1, (2, "b"))}, object())) is None
    assert misfit(Outer({"a": Inner("1")})) == "it/inner/a/n is '1'"  # type: ignore[arg-type]
    assert misfit(Outer({"a": Inner(1, (2, []))})) == "it/inner/a/pair is a tuple"  # type: ignore[arg-type]
