"""What can be wrong when code asks a row for something."""

from __future__ import annotations

import difflib


class NoField(AttributeError):
    """A field that a row does not have; told as an error of the code that asked for it."""

    def __init__(self, name: str, fields: tuple[str, ...]) -> None:
        super().__init__(name)
        self.field, self.fields = name, fields

    def __str__(self) -> str:
        """Made when it is shown: code may ask rows for fields that they need not have."""
        like = difflib.get_close_matches(self.field, self.fields, 1)
        meant = f"; did you mean {like[0]!r}?" if like else ""
        return f"the row has no field {self.field!r}; its fields are {', '.join(self.fields)}{meant}"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.field, self.fields))
