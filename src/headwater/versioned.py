"""Facts that are stored or sent as JSON, each with the version of its form, which is checked when it is read.

As text they carry a checksum too, which covers what kind of record it is. A text without one was written before there
were any.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from headwater.durable import write_atomically
from headwater.errors import JobError
from headwater.shapes import fits, misfit

_KEY, _CHECK = "format", "crc32"


@dataclass(frozen=True)
class Versioned:
    """A frozen record of which the form can change. What is none of JSON's own values, a record turns into them itself.

    One without a version was written before there were any, in the form of version 1. A field that a record lacks has
    its default.
    """

    FORMAT: ClassVar[int] = 1

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return {_KEY: self.FORMAT, **self._content()}

    @classmethod
    def from_json(cls, content: Any, where: str) -> Self:
        """The reverse of `to_json`; `where` it stands is told when it is no such record, or one of a newer version."""
        try:
            version = content.get(_KEY, 1)
            if not fits(version, int) or version < 1:
                raise JobError.corrupt(where, f"it is of version {version!r:.100}")
            if version > cls.FORMAT:
                raise JobError.newer_format(where, version, cls.FORMAT)
            found = cls._of(content, where)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise JobError.corrupt(where, f"{type(error).__name__}: {error}") from None
        if (problem := misfit(found)) is not None:
            raise JobError.corrupt(where, problem)
        return found

    def to_text(self) -> str:
        """One line; the same record gives the same text."""
        text = _dumped(self.to_json())
        return f'{{"{_CHECK}":{self._summed(text)},{text[1:]}'

    @classmethod
    def from_text(cls, text: str, where: str) -> Self:
        """The reverse of `to_text`."""
        try:
            content = json.loads(text)
            is_summed = isinstance(content, dict) and _CHECK in content
            is_whole = not is_summed or content.pop(_CHECK) == cls._summed(_dumped(content))
        except (ValueError, RecursionError) as error:
            raise JobError.corrupt(where, str(error)) from None
        if not is_whole:
            raise JobError.corrupt(where, "its checksum does not fit")
        found = cls.from_json(content, where)
        if not is_summed and (unknown := sorted({*content} - {*found.to_json(), _KEY})):
            raise JobError.corrupt(where, f"it has {unknown[0]!r}, and no checksum")
        return found

    @classmethod
    def _summed(cls, text: str) -> int:
        """A record that is whole, but of another kind, has another sum; a class with another name needs a new version."""
        return zlib.crc32(f"{cls.__name__.strip('_')}:{text}".encode())

    def write(self, path: Path) -> None:
        """Put the record into a file of its own, atomically."""
        write_atomically(path, self.to_text().encode())

    @classmethod
    def read(cls, path: Path) -> Self:
        """The record in a file."""
        found = cls.read_if_there(path)
        if found is None:
            raise JobError.corrupt(str(path), "it is missing")
        return found

    @classmethod
    def read_if_there(cls, path: Path) -> Self | None:
        """The record in a file; None where there is no such file."""
        try:
            text = path.read_text()
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise JobError.corrupt(str(path), str(error)) from None
        return cls.from_text(text, str(path))

    def _content(self) -> dict[str, Any]:
        """The fields as JSON has them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def _of(cls, content: dict[str, Any], where: str) -> Self:  # noqa: ARG003  records that hold records need it
        """The record that `_content` gave."""
        return cls(**{one.name: content[one.name] for one in fields(cls) if one.name in content})


def _dumped(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))
