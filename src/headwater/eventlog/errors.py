"""Every error text of the event log."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self

from headwater.errors import HeadwaterError


class LogError(HeadwaterError):
    """The root of all errors of the embedded event log."""

    appended: Mapping[int, tuple[int, int]] = MappingProxyType({})
    """For an append by key: the partitions that took their rows before one failed."""

    @classmethod
    def _with(cls, text: str, **facts: object) -> Self:
        error = cls(text)
        error.__dict__.update(facts)
        return error

    def after(self, appended: dict[int, tuple[int, int]]) -> Self:
        """Tell which partitions of an append by key are done."""
        self.appended = appended
        if appended:
            self.add_note(f"partitions {sorted(appended)} took their rows; append only the rest again")
        return self


class LogArgument(LogError):
    """A value the event log cannot work with."""

    subject: str
    given: object

    @classmethod
    def of(cls, subject: str, rule: str, given: object) -> Self:
        return cls._with(f"{subject} must be {rule}; got {given!r}; pass such a value", subject=subject, given=given)


class TopicMissing(LogError):
    """A topic that is not in the log."""

    topic: str
    existing: list[str]

    @classmethod
    def of(cls, topic: str, root: object, existing: list[str]) -> Self:
        found = f"it holds {', '.join(existing)}" if existing else "it holds no topics"
        return cls._with(
            f"topic {topic!r} must exist in the log {root}; {found}; "
            f"create it with log.create_topic({topic!r}, schema, partitions=...)",
            topic=topic,
            existing=existing,
        )


class TopicExists(LogError):
    """A topic that is there already, or is there with other settings."""

    topic: str

    @classmethod
    def of(cls, topic: str, root: object) -> Self:
        return cls._with(
            f"topic {topic!r} must be new to be created; the log {root} has it; "
            f"open it with log.topic({topic!r}) or pass exist_ok=True",
            topic=topic,
        )

    @classmethod
    def different(cls, topic: str, what: str, stored: object, asked: object) -> Self:
        return cls._with(
            f"topic {topic!r} exists and its {what} cannot change; stored is {stored}, asked for is {asked}; "
            f"use log.topic({topic!r}) as it is, or create a topic of another name",
            topic=topic,
        )


class PartitionMissing(LogError):
    """A partition number the topic does not have."""

    topic: str
    partition: int
    partitions: int

    @classmethod
    def of(cls, topic: str, partition: object, partitions: int) -> Self:
        return cls._with(
            f"topic {topic!r} has partitions 0 to {partitions - 1}; got {partition!r}; pass one of these",
            topic=topic,
            partition=partition,
            partitions=partitions,
        )


class LogSchemaMismatch(LogError):
    """Rows that do not have the topic's columns."""

    topic: str
    field: str
    expected: str | None
    given: str | None

    @classmethod
    def _of(cls, text: str, topic: str, field: str, expected: str | None = None, given: str | None = None) -> Self:
        return cls._with(text, topic=topic, field=field, expected=expected, given=given)

    @classmethod
    def kind(cls, topic: str, field: str, expected: str, given: str) -> Self:
        text = (
            f"topic {topic!r} field {field!r} must have type {expected}; got {given}; "
            f"cast the column before the append (the log changes no values)"
        )
        return cls._of(text, topic, field, expected, given)

    @classmethod
    def missing(cls, topic: str, field: str, expected: str, given: list[str]) -> Self:
        text = (
            f"topic {topic!r} needs the field {field!r} of type {expected}; "
            f"the rows have {', '.join(given) or 'none'}; add the column"
        )
        return cls._of(text, topic, field, expected)

    @classmethod
    def unknown(cls, topic: str, field: str, given: str, expected: list[str]) -> Self:
        text = f"topic {topic!r} has no field {field!r} ({given}); it has {', '.join(expected)}; drop the column"
        return cls._of(text, topic, field, given=given)

    @classmethod
    def duplicate(cls, topic: str, field: str) -> Self:
        text = f"topic {topic!r} takes each column once; the rows have {field!r} several times; rename or drop one"
        return cls._of(text, topic, field)

    @classmethod
    def unsound(cls, topic: str, field: str, what: str) -> Self:
        text = f"topic {topic!r} field {field!r} cannot hold a value of the rows: {what}; drop or mend these rows"
        return cls._of(text, topic, field)

    @classmethod
    def nulls(cls, topic: str, field: str, count: int) -> Self:
        text = f"topic {topic!r} field {field!r} must not be null; {count} rows have none; fill or drop these rows"
        return cls._of(text, topic, field)


class OffsetGone(LogError):
    """Rows that retention has removed."""

    topic: str
    partition: int
    offset: int
    earliest: int

    @classmethod
    def of(cls, topic: str, partition: int, offset: int, earliest: int) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} no longer holds offset {offset}; retention has removed it and the "
            f"earliest kept is {earliest}; read from {earliest} if the gap is acceptable, and raise the topic's "
            f"retention if readers need more time",
            topic=topic,
            partition=partition,
            offset=offset,
            earliest=earliest,
        )


class OffsetAhead(LogError):
    """Rows that have not been written yet."""

    topic: str
    partition: int
    offset: int
    end: int

    @classmethod
    def of(cls, topic: str, partition: int, offset: int, end: int) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} has rows up to offset {end}; got {offset}; "
            f"read no further than topic.end_offsets()[{partition}]",
            topic=topic,
            partition=partition,
            offset=offset,
            end=end,
        )


class LogUnreadable(LogError):
    """Files of the log that this user may not read, or that cannot be read."""

    topic: str
    errno: int | None

    @classmethod
    def of(cls, topic: str, cause: OSError) -> Self:
        return cls._with(
            f"topic {topic!r} can be read only where this user may read; {cause}; change the owner or the rights of "
            f"the log's folder, or check the disk",
            topic=topic,
            errno=cause.errno,
        )


class LogFormatUnknown(LogError):
    """A topic written by another version of Headwater."""

    path: str
    found: object
    known: int

    @classmethod
    def of(cls, path: object, found: object, known: int) -> Self:
        return cls._with(
            f"{path} must have log format {known}; it has {found!r}; open it with the Headwater that wrote it",
            path=str(path),
            found=found,
            known=known,
        )


class LogCorrupt(LogError):
    """Bytes in the log that are not what was written, with rows after them. Nothing is skipped."""

    path: str
    position: int | None
    topic: str | None
    partition: int | None
    offset: int | None

    @classmethod
    def frame(cls, path: object, position: int, reason: str, *, topic: str, partition: int, offset: int) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} is damaged in {path} at byte {position}, offset {offset}; "
            f"{reason}; restore this file from a copy, or give up every row from {offset} on with "
            f"topic.drop_from({partition}, {offset})",
            path=str(path),
            position=position,
            topic=topic,
            partition=partition,
            offset=offset,
        )

    @classmethod
    def stray(cls, path: object, *, topic: str, partition: int) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} must hold no segments but its own; {path} has a name that the log "
            f"gives to none; move this file away",
            path=str(path),
            position=None,
            topic=topic,
            partition=partition,
            offset=None,
        )

    @classmethod
    def unlinked(cls, path: object, before: object, *, topic: str, partition: int, offset: int) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} must have segments that follow each other; {before} ends at offset "
            f"{offset}, where {path} does not begin; move that one away if it does not belong here, restore what is "
            f"missing from a copy, or give up every row from {offset} on with topic.drop_from({partition}, {offset})",
            path=str(path),
            position=None,
            topic=topic,
            partition=partition,
            offset=offset,
        )

    @classmethod
    def descriptor(cls, path: object, reason: str) -> Self:
        return cls._with(
            f"{path} must describe a topic; {reason}; restore this file from a copy",
            path=str(path),
            position=None,
            topic=None,
            partition=None,
            offset=None,
        )


class LogWriteFailed(LogError):
    """The disk refused an append or a flush. The append is undone and the log stays usable."""

    topic: str
    partition: int | None
    """None where it is about the topic as a whole."""
    errno: int | None

    @classmethod
    def read_only(cls, topic: str, partition: int | None, folder: object, cause: OSError) -> Self:
        return cls._with(
            f"topic {topic!r} can be written only where this user may write; {folder} is read-only ({cause}); "
            f"change the folder's owner or rights, or only read the topic",
            topic=topic,
            partition=partition,
            errno=cause.errno,
        )

    @classmethod
    def append(cls, topic: str, partition: int, cause: OSError) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} could not take the append and none of its rows were kept; {cause}; "
            f"free space on the disk or tighten the topic's retention, then append again",
            topic=topic,
            partition=partition,
            errno=cause.errno,
        )

    @classmethod
    def flush(cls, topic: str, partition: int, cause: OSError) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} could not be flushed, so its last rows may not survive power loss; "
            f"{cause}; check the disk, then append these rows again",
            topic=topic,
            partition=partition,
            errno=cause.errno,
        )
