"""Facts that are stored or sent as JSON, each with the version of its form, which is checked when it is read."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from headwater.durable import write_atomically
from headwater.errors import JobError

_KEY = "format"


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
            version = int(content.get(_KEY, 1))
            if version > cls.FORMAT:
                raise JobError.newer_format(where, version, cls.FORMAT)
            return cls._of(content, where)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise JobError.corrupt(where, f"{type(error).__name__}: {error}") from None

    def to_text(self) -> str:
        """One line; the same record gives the same text."""
        return json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_text(cls, text: str, where: str) -> Self:
        """The reverse of `to_text`."""
        try:
            content = json.loads(text)
        except ValueError as error:
            raise JobError.corrupt(where, str(error)) from None
        return cls.from_json(content, where)

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
