"""Every error text of expressions."""

from __future__ import annotations

from typing import Self

from headwater.errors import SchemaError, short


class ExpressionError(SchemaError):
    """An expression that cannot be read, or does not fit the schema or the table of functions."""

    problem = ""
    action = ""

    @classmethod
    def _of(cls, step: str, problem: str, action: str) -> Self:
        error = cls(f"step {step!r}: {problem}; {action}")
        error.problem, error.action = problem, action
        return error

    @classmethod
    def unreadable_expression(cls, step: str, text: str, problem: str) -> Self:
        return cls._of(step, f"cannot read {short(text)}: {problem}", "correct the SQL expression")

    @classmethod
    def not_one_expression(cls, step: str, text: str) -> Self:
        return cls._of(
            step,
            f"{short(text)} is not one scalar expression",
            "aggregates, subqueries and statements are not for select and where",
        )

    @classmethod
    def not_an_expression(cls, step: str, text: str, part: str) -> Self:
        return cls._of(
            step,
            f"{short(part)} in {short(text)} is not supported in an expression",
            "see docs/reference/functions.md for what is",
        )

    @classmethod
    def unnamed_expression(cls, step: str, text: str) -> Self:
        return cls._of(step, f"expression {short(text)} has no name", "write 'expression as name'")

    @classmethod
    def no_condition(cls, step: str, text: str, got: str) -> Self:
        return cls._of(step, f"{short(text)} is no condition; got {got}", "write a boolean expression without a name")

    @classmethod
    def changing_function(cls, step: str, text: str, name: str) -> Self:
        return cls._of(
            step,
            f"{name} in {short(text)} gives another value each time, so a replay would differ",
            "use a column, or ctx.now in a function",
        )

    @classmethod
    def no_function(cls, step: str, text: str, name: str, nearest: list[str]) -> Self:
        near = f"; the nearest are {', '.join(nearest)}" if nearest else ""
        return cls._of(
            step, f"there is no function {name} in {short(text)}{near}", "see docs/reference/functions.md for all"
        )

    @classmethod
    def wrong_arguments(cls, step: str, text: str, name: str, given: str, takes: str) -> Self:
        return cls._of(step, f"{name} in {short(text)} got ({given})", f"it takes {takes}; cast what has another type")

    @classmethod
    def bad_expression(cls, step: str, text: str, why: str) -> Self:
        return cls._of(step, f"cannot compute {short(text)}: {why}", "correct the SQL expression")

    @classmethod
    def no_such_column(cls, step: str, text: str, dtype: str) -> Self:
        return cls._of(step, f"{short(text)} is of type {dtype}, which no column can hold", "cast it to another type")

    @classmethod
    def too_deep(cls, step: str, text: str, most: int) -> Self:
        return cls._of(
            step, f"{short(text)} is nested more than {most} levels deep", "compute parts in a select before it"
        )

    @classmethod
    def too_long(cls, step: str, size: int, most: int) -> Self:
        return cls._of(
            step, f"an expression is too long: {size}, of at most {most}", "compute parts in a select before it"
        )
