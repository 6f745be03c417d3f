from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.parts.examples import examples

from headwater.durations import duration_ms
from headwater.errors import DurationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250ms", 250),
        ("250 milliseconds", 250),
        ("10 s", 10_000),
        ("10 sec", 10_000),
        ("10 seconds", 10_000),
        ("5 min", 300_000),
        ("5m", 300_000),
        ("1 h", 3_600_000),
        ("2 hours", 7_200_000),
        ("1 day", 86_400_000),
        ("1 d 2 h 3 min 4 s 5 ms", 93_784_005),
        ("  1 MIN 30 S ", 90_000),
        ("0 s", 0),
        ("1.5 s", 1_500),
    ],
)
def test_text_is_read_with_its_unit(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


def test_a_timedelta_is_read_as_it_is() -> None:
    assert duration_ms(timedelta(days=1, milliseconds=7)) == 86_400_007


@examples(200)
@given(st.integers(0, 10**9), st.integers(0, 3))
def test_a_fraction_is_exact(digits: int, places: int) -> None:
    number = Decimal(digits).scaleb(-places)
    assert duration_ms(f"{number:f} s") == number * 1000


@pytest.mark.parametrize(
    "bad", ["", "10", "s", "10 parsecs", "10 s nonsense", "about 10 s", "1 s, 2 ms", 10, 1.5, None]
)
def test_what_is_no_duration_is_refused(bad: object) -> None:
    with pytest.raises(DurationError, match="must be a duration"):
        duration_ms(bad)  # type: ignore[arg-type]


def test_an_error_names_the_setting_the_value_and_an_example() -> None:
    with pytest.raises(DurationError, match=r"the gap must be a duration; got '5 apples'; write it as '10 s'"):
        duration_ms("5 apples", what="the gap")


@pytest.mark.parametrize("bad", ["0.5 ms", "1.0001 s", timedelta(microseconds=1)])
def test_less_than_a_millisecond_is_refused(bad: str | timedelta) -> None:
    with pytest.raises(DurationError, match="whole milliseconds"):
        duration_ms(bad)


@pytest.mark.parametrize("bad", ["-1 s", timedelta(seconds=-1)])
def test_a_negative_duration_is_refused_unless_asked_for(bad: str | timedelta) -> None:
    with pytest.raises(DurationError, match="must not be negative"):
        duration_ms(bad)
    assert duration_ms(bad, negative=True) == -1_000
