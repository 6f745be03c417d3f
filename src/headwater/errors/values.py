"""Errors of what users write down: durations, sizes, schemas, rows."""

from __future__ import annotations

from headwater.errors.roots import HeadwaterError, short
from headwater.moments import unit_meant


class DurationError(HeadwaterError, ValueError):
    """A duration that cannot be read."""

    @classmethod
    def not_a_duration(cls, what: str, value: object) -> DurationError:
        return cls(
            f"{what} must be a duration; got {value!r}; write it as '10 s', '1 min 30 s', '250 ms' or a timedelta"
        )

    @classmethod
    def negative(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must not be negative; got {value!r}")

    @classmethod
    def too_long(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must fit 64 bits of milliseconds, 292 million years; got {value!r}; choose a shorter one")

    @classmethod
    def finer_than_a_millisecond(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must be whole milliseconds; got {value!r}")


class SizeError(HeadwaterError, ValueError):
    """A size in bytes that cannot be read."""

    @classmethod
    def not_a_size(cls, what: str, value: object) -> SizeError:
        return cls(f"{what} must be a size; got {value!r}; write it as '512 MB', '2 GB' or '64 MiB'")


class SchemaError(HeadwaterError, ValueError):
    """A schema that cannot be read or does not fit."""

    @classmethod
    def not_a_schema(cls, given: object) -> SchemaError:
        return cls(
            f"a schema is DDL text such as 'user string, amount double' or a pyarrow.Schema; got {type(given).__name__}"
        )

    @classmethod
    def bad_ddl(cls, text: str, at: int, problem: str) -> SchemaError:
        return cls(f"schema cannot be read: {problem}, at position {at}\n  {text}\n  {' ' * at}^")

    @classmethod
    def empty(cls, text: str) -> SchemaError:
        return cls(f"a schema needs at least one field; got {text!r}")

    @classmethod
    def duplicate_field(cls, name: str, text: str) -> SchemaError:
        return cls(f"field names must be unique; {name!r} appears twice in {text!r}")

    @classmethod
    def reserved_name(cls, name: str) -> SchemaError:
        return cls(f"field names must not start with two underscores (kept for the runtime); got {name!r}; rename it")

    @classmethod
    def unsupported_type(cls, name: str, known: list[str]) -> SchemaError:
        return cls(f"type {name!r} is not supported; use one of {', '.join(known)}")

    @classmethod
    def no_field(cls, name: str, names: list[str], step: str = "") -> SchemaError:
        subject = f"step {step!r}: " if step else ""
        return cls(f"{subject}there is no field {name!r}; the fields are {', '.join(names)}")

    @classmethod
    def of_column(cls, name: str, where: str, error: object) -> SchemaError:
        return cls(f"column {name!r}{where}: {error}")

    @classmethod
    def does_not_fit(cls, step: str, problem: str, action: str) -> SchemaError:
        return cls(f"step {step!r}: {problem}; {action}")


class RowError(HeadwaterError, ValueError):
    """A row or value that does not fit the schema of the step that made it."""

    @classmethod
    def value_does_not_fit(cls, step: str, field: str, value: object, dtype: object, why: str) -> RowError:
        return cls(f"step {step!r}, field {field!r}: value {short(value)} does not fit {dtype}: {why}")

    @classmethod
    def wrong_fields(cls, step: str, row: dict[str, object], names: list[str]) -> RowError:
        missing = [n for n in names if n not in row]
        unknown = [str(n) for n in row if n not in names]
        facts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        return cls(
            f"step {step!r}: row {short(row)} {' and '.join(facts)}; its schema has the fields {', '.join(names)}"
        )

    @classmethod
    def wrong_length(cls, step: str, row: object, names: list[str]) -> RowError:
        return cls(f"step {step!r}: row {short(row)} must have {len(names)} values, for {', '.join(names)}")

    @classmethod
    def not_a_row(cls, step: str, row: object, names: list[str]) -> RowError:
        return cls(
            f"step {step!r}: expected a dict or tuple with {', '.join(names)}; got {short(row)} "
            f"({type(row).__name__}); yield rows, not bare values"
        )

    @classmethod
    def wrong_result(cls, step: str, rule: str, fact: object, action: str) -> RowError:
        return cls(f"step {step!r}: the function must return {rule}; got {fact}; {action}")

    @classmethod
    def other_tag(cls, step: str, tag: str, written: str, read: str) -> RowError:
        return cls(
            f"step {step!r}: side output {tag!r} is written as '{written}' and read as '{read}'; use one OutputTag"
        )

    @classmethod
    def no_event_time(cls, step: str) -> RowError:
        return cls(
            f"step {step!r} works in event time, and a row has none; give the source watermarks, "
            "call .assign_watermarks(...) on the stream, or work in processing time"
        )

    @classmethod
    def null_time(cls, step: str, column: str) -> RowError:
        return cls(
            f"step {step!r} takes event time from {column!r}, which must not be null; a row has none there; "
            f"drop such rows first, with .where('{column} is not null')"
        )

    @classmethod
    def beyond_datetimes(cls, micros: int) -> RowError:
        return cls(
            f"a timestamp is {micros} microseconds from 1970, and Python's datetimes end with the year 9999; "
            f"{unit_meant(micros // 1000) or 'filter such rows out, or keep the time as a bigint'}"
        )

    @classmethod
    def row_count(cls, step: str, before: int, after: int) -> RowError:
        return cls(
            f"step {step!r}: the function got {before} rows and returned {after}, so their event times are unknown; "
            f"return one row per row or name the time column with timestamp=..."
        )
