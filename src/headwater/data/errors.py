"""What can be wrong with rows and their types, and when code asks a row, or the context that it comes with, for something."""

from __future__ import annotations

import difflib

from headwater.errors import RowError, SchemaError


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


class NotInContext(AttributeError):
    """Something that the context of a function without state or key does not have."""

    @classmethod
    def of(cls, name: str) -> NotInContext:
        return cls(
            f"ctx.{name} is for functions with a key or state; this one has neither, so ctx has timestamp and output; "
            f"call key_by(...) first and make it a hw.KeyedProcessFunction"
        )


class UnsoundRow(RowError):
    """A row with a value that no step and no output can be given."""

    @classmethod
    def of(cls, step: str, fault: object, action: str) -> UnsoundRow:
        return cls(f"step {step!r}, {fault}; {action}")


class BadMapKey(SchemaError):
    """A map that cannot be a dict of Python."""

    @classmethod
    def of(cls, dtype: str) -> BadMapKey:
        return cls(
            f"a map's key cannot be {dtype}: it must not be null and must be hashable; make a struct or text of it"
        )
