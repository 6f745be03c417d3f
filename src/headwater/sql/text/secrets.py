"""What options must never be shown: not in errors, not by SHOW, not in what a table says of itself."""

from __future__ import annotations

from typing import Final

from sqlglot.tokenizer_core import Token, TokenType

SHOWN_INSTEAD: Final = "******"
_WORDS: Final = ("password", "passwd", "secret", "sasl", "token", "credential", "ssl.key", "keystore", "truststore")
_WHOLE: Final = ("url", "connection")
"""Addresses, which may have a password inside."""
_ENV: Final = "env:"


def is_secret(key: str, value: str) -> bool:
    """Whether the value of an option is not to be shown; the name of a variable of the environment may be."""
    lower = key.lower()
    return not value.startswith(_ENV) and (any(word in lower for word in _WORDS) or lower in _WHOLE)


def hidden(tokens: list[Token], text: str) -> str:
    """The text, of the same length, with stars for the values of secret options."""
    parts, at = [], 0
    for key, equals, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        is_option = key.token_type == value.token_type == TokenType.STRING and equals.token_type == TokenType.EQ
        if is_option and is_secret(key.text, value.text) and value.end - value.start > 1:
            inside = text[value.start + 1 : value.end]
            parts += [text[at : value.start + 1], "".join(c if c == "\n" else "*" for c in inside)]
            at = value.end
    return "".join([*parts, text[at:]])
