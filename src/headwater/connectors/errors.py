"""What can be wrong with rows for an output, told before they are committed."""

from __future__ import annotations

from headwater.errors import RowError, short


class NotWritable(RowError):
    """A row that an output cannot be given."""

    @classmethod
    def no_folder(cls, column: str, value: object, why: str) -> NotWritable:
        return cls(f"column {column!r}, which names folders, is {short(value, 60)}: {why}")

    @classmethod
    def record_too_large(cls, step: str, record: str, size_bytes: int, whose: str, most_bytes: int) -> NotWritable:
        return cls(
            f"step {step!r}: {record} has {size_bytes} bytes with what is sent around it, more than {whose} limit of "
            f"{most_bytes}; raise both: options={{'message.max.bytes': …}} here, and max.message.bytes of the topic"
        )
