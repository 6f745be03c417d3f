"""Secrets stay out of what is shown: those that are known, and what may be one in an address that is written wrongly."""

from __future__ import annotations

import re
from collections.abc import Iterable

ENV = "env:"
"""How a value begins that is the name of a variable of the environment."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USER_INFO = re.compile(r"(?<=://)[^/\s]*@")
_PARTS = re.compile(r"[\s,;&=]+")
_LEAST = 4
"""Shorter parts of a secret are words as any: to hide them would spoil the text and save nothing."""
HIDDEN = "…"


def is_variable(given: str) -> bool:
    """Whether this names a variable of the environment, and is not an address that somebody has put there."""
    return given.startswith(ENV) and _VARIABLE.fullmatch(given.removeprefix(ENV)) is not None


def without(secrets: Iterable[str], text: str) -> str:
    """The text without secrets, and without parts of them: a library may quote the piece that it cannot read."""
    known = {secret for secret in secrets if secret}
    pieces = {piece for secret in known for piece in _PARTS.split(secret) if len(piece) >= _LEAST}
    for secret in sorted(known | pieces, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def without_user(address: str) -> str:
    """An address without the name and password that may be in it.

    >>> without_user("s3a://key:secret@bucket/table"), without_user("/data/table")
    ('s3a://…@bucket/table', '/data/table')
    """
    return _USER_INFO.sub(f"{HIDDEN}@", address)
