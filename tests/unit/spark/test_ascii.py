"""Bytes as ASCII text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.spark.ascii import from_ascii, to_ascii


@given(st.binary(max_size=100))
def test_bytes_are_read_back_from_their_text(data: bytes) -> None:
    text = to_ascii(data)
    assert text.isascii()
    assert from_ascii(text) == data


def test_the_text_is_longer_by_a_seventh() -> None:
    assert len(to_ascii(b"\xff" * 7_000)) == 8_001


@pytest.mark.parametrize("text", ["", "x", "a" * 7 + "0", "a" * 8 + "7", "é" * 8 + "0", "a" * 8 + "²", "3"])
def test_what_is_no_text_of_bytes_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"not bytes as text|invalid literal|ascii"):
        from_ascii(text)
