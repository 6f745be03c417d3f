"""What requests may say: each field with its type and bounds, for the check of a request and for its description alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headwater.serving.refused import Refused

if TYPE_CHECKING:
    from starlette.requests import Request

STRING, INTEGER, BOOLEAN = "string", "integer", "boolean"
_NUMBER = re.compile(r"-?[0-9]{1,15}")
_MOST_MS = 10**15 - 1


@dataclass(frozen=True)
class Field:
    """A value that a request gives by name."""

    name: str
    kind: str
    about: str
    is_required: bool = False
    default: Any = None
    pattern: str | None = None
    least: int = 0
    """Of characters, or of a number."""
    most: int = _MOST_MS

    def schema(self) -> dict[str, Any]:
        """As OpenAPI describes it."""
        found: dict[str, Any] = {"type": self.kind}
        if self.kind == STRING:
            found |= {"minLength": self.least, "maxLength": self.most}
            if self.pattern is not None:
                found["pattern"] = f"^{self.pattern}$"
        elif self.kind == INTEGER:
            found |= {"minimum": self.least, "maximum": self.most}
        if self.default is not None:
            found["default"] = self.default
        return found

    def checked(self, given: Any) -> Any:
        """A value as JSON had it, if it is what the field says."""
        is_kind = {
            STRING: isinstance(given, str),
            INTEGER: isinstance(given, int) and not isinstance(given, bool),
            BOOLEAN: isinstance(given, bool),
        }[self.kind]
        if not is_kind:
            raise Refused(400, f"{self.name} must be of type {self.kind}")
        size = len(given) if self.kind == STRING else given
        if self.kind != BOOLEAN and not self.least <= size <= self.most:
            what = "characters" if self.kind == STRING else "as its value"
            raise Refused(400, f"{self.name} must have {self.least:,} to {self.most:,} {what}")
        if self.pattern is not None and re.fullmatch(self.pattern, given) is None:
            raise Refused(400, f"{self.name} must be like {self.pattern}")
        return given

    def read(self, text: str) -> Any:
        """A value as an address has it."""
        if self.kind == STRING:
            return self.checked(text)
        if self.kind == BOOLEAN:
            if text not in ("true", "false"):
                raise Refused(400, f"{self.name} must be true or false")
            return text == "true"
        if _NUMBER.fullmatch(text) is None:
            raise Refused(400, f"{self.name} must be a whole number")
        return self.checked(int(text))


def from_query(request: Request, fields: Iterable[Field]) -> dict[str, Any]:
    """The fields in the query of an address; what is none of them is refused."""
    known = {field.name: field for field in fields}
    pairs = request.query_params.multi_items()
    _check_names([name for name, _ in pairs], known)
    return _complete({name: known[name].read(text) for name, text in pairs}, known)


def from_body(body: bytes | bytearray, fields: Iterable[Field]) -> dict[str, Any]:
    """The fields in a body of JSON; no body is an empty one."""
    known = {field.name: field for field in fields}
    try:
        content = json.loads(body) if body else {}
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise Refused(400, "the body must be an object")
    _check_names(list(content), known)
    return _complete({name: known[name].checked(value) for name, value in content.items()}, known)


def _check_names(given: list[str], known: Mapping[str, Field]) -> None:
    if unknown := sorted(set(given) - set(known)):
        raise Refused(400, f"{unknown[0][:100]!r} is unknown here; known are: {', '.join(known) or 'none'}")
    if len(set(given)) != len(given):
        raise Refused(400, "a name is given twice")


def _complete(given: dict[str, Any], known: Mapping[str, Field]) -> dict[str, Any]:
    missing = [field.name for field in known.values() if field.is_required and field.name not in given]
    if missing:
        raise Refused(400, f"{missing[0]} is missing")
    return {name: given.get(name, field.default) for name, field in known.items()}
