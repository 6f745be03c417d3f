"""Every error Headwater raises on purpose.

A message says the subject and the rule, then the fact, then the next action. The facts are attributes, so that callers
need not parse text. Texts live here, in classmethods, so that one read of this file shows what a user can meet.
"""

from __future__ import annotations

from typing import Self


class HeadwaterError(Exception):
    """The root of all errors raised by Headwater."""


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
    def finer_than_a_millisecond(cls, what: str, value: object) -> DurationError:
        return cls(f"{what} must be whole milliseconds; got {value!r}")


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
    def does_not_fit(cls, step: str, problem: str, action: str) -> SchemaError:
        return cls(f"step {step!r}: {problem}; {action}")


class GraphError(HeadwaterError, ValueError):
    """A job graph that must not run; raised while it is built, before any engine starts."""

    @classmethod
    def duplicate_uid(cls, uid: str, first: str, second: str) -> GraphError:
        return cls(
            f"uids of steps must be unique; {uid!r} is the uid of {first} and of {second}; "
            f"give one of them another with .with_uid(...)"
        )

    @classmethod
    def bad_uid(cls, uid: object) -> GraphError:
        return cls(f"a uid is made of letters, digits, '_', '-' and '.', at most 100 of them; got {uid!r}")

    @classmethod
    def nothing_to_run(cls, job: str) -> GraphError:
        return cls(f"job {job!r} has no sink, so nothing would run; end a stream with .sink(...) or .collect()")

    @classmethod
    def no_input(cls, title: str) -> GraphError:
        return cls(f"every step but a source needs an input; {title} has none; build steps on streams")

    @classmethod
    def needs_keyed(cls, step: str, got: str) -> GraphError:
        return cls(f"step {step!r} needs a keyed stream; got {got}; call .key_by(...) first")

    @classmethod
    def other_environment(cls, step: str) -> GraphError:
        return cls(f"step {step!r} joins streams of two environments; build both from the same hw.Environment")

    @classmethod
    def bad_argument(cls, step: str, rule: str, fact: object, action: str) -> GraphError:
        return cls(f"step {step!r} {rule}; got {fact!r}; {action}")


class RowError(HeadwaterError, ValueError):
    """A row or value that does not fit the schema of the step that made it."""

    @classmethod
    def value_does_not_fit(cls, step: str, field: str, value: object, dtype: object, why: str) -> RowError:
        return cls(f"step {step!r}, field {field!r}: value {_short(value)} does not fit {dtype}: {why}")

    @classmethod
    def wrong_fields(cls, step: str, row: dict[str, object], names: list[str]) -> RowError:
        missing = [n for n in names if n not in row]
        unknown = [str(n) for n in row if n not in names]
        facts = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        return cls(
            f"step {step!r}: row {_short(row)} {' and '.join(facts)}; its schema has the fields {', '.join(names)}"
        )

    @classmethod
    def wrong_length(cls, step: str, row: object, names: list[str]) -> RowError:
        return cls(f"step {step!r}: row {_short(row)} must have {len(names)} values, for {', '.join(names)}")

    @classmethod
    def not_a_row(cls, step: str, row: object, names: list[str]) -> RowError:
        return cls(
            f"step {step!r}: expected a dict or tuple with {', '.join(names)}; got {_short(row)} "
            f"({type(row).__name__}); yield rows, not bare values"
        )

    @classmethod
    def other_tag(cls, step: str, tag: str, written: str, read: str) -> RowError:
        return cls(
            f"step {step!r}: side output {tag!r} is written as '{written}' and read as '{read}'; use one OutputTag"
        )

    @classmethod
    def no_event_time(cls, step: str) -> RowError:
        return cls(
            f"step {step!r}: windows in event time need rows with one, and a row has none; give the source watermarks, "
            "or use hw.processing_time(...)"
        )

    @classmethod
    def row_count(cls, step: str, before: int, after: int) -> RowError:
        return cls(
            f"step {step!r}: the function got {before} rows and returned {after}, so their event times are unknown; "
            f"return one row per row or name the time column with timestamp=..."
        )


class UserCodeError(HeadwaterError):
    """User code raised: which step, for which key, at which time, and the user's own traceback on top."""

    def __init__(self, step: str, key: object, timestamp: int | None, cause: str, traceback: str) -> None:
        self.step, self.key, self.timestamp, self.cause, self.traceback = step, key, timestamp, cause, traceback
        where = f"step {step!r} failed"
        if key is not None:
            where += f" for key {key if isinstance(key, str) and key.startswith('<') else _short(key)}"
        if timestamp is not None:
            where += f" at timestamp {timestamp}"
        super().__init__(f"{where}: {cause}\n{traceback}".rstrip())

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.step, self.key, self.timestamp, self.cause, self.traceback))


class StateError(HeadwaterError):
    """State used or declared wrongly."""

    @classmethod
    def bad_default(cls, name: str, default: object, dtype: object, why: str) -> StateError:
        return cls(f"state {name!r}: default {_short(default)} does not fit {dtype}: {why}")

    @classmethod
    def value_does_not_fit(cls, step: str, name: str, key: object, value: object, why: str) -> StateError:
        return cls(f"step {step!r}, state {name!r}, key {_short(key)}: value {_short(value)} does not fit: {why}")

    @classmethod
    def not_open(cls, name: str) -> StateError:
        return cls(
            f"state {name!r} is reachable only while the job runs the function; it was used outside process or on_timer, "
            f"or it is broadcast state, which ctx.broadcast_state gives"
        )

    @classmethod
    def no_key(cls) -> StateError:
        return cls(
            "keyed state is reachable only in process and on_timer, where there is a current key; it was used in open, "
            "or in process_broadcast, where ctx.apply_to_keyed_state goes through the keys"
        )

    @classmethod
    def misused(cls, step: str, rule: str, action: str) -> StateError:
        return cls(f"step {step!r}: {rule}; {action}")

    @classmethod
    def declared_twice(cls, step: str, name: str) -> StateError:
        return cls(f"step {step!r} declares the state {name!r} twice; give one of them another name")

    @classmethod
    def bad_key_type(cls, step: str, dtype: object) -> StateError:
        return cls(
            f"step {step!r} cannot use {dtype} as a key: its equality is not exact or it is not hashable; "
            f"cast it to string or decimal, or use one of its fields"
        )


class ChangelogError(HeadwaterError):
    """Stored state that cannot be read."""

    @classmethod
    def bad_blob(cls, problem: str) -> ChangelogError:
        return cls(
            f"stored state cannot be read: {problem}; the checkpoint is damaged or was written by another version; "
            f"restore the job folder from a copy"
        )

    @classmethod
    def bad_payload(cls, start: bytes) -> ChangelogError:
        return cls(
            f"rows between two levels cannot be read: they start with {start!r}; workers run different versions?"
        )

    @classmethod
    def missing_sequence(cls, step: str, sequence: int) -> ChangelogError:
        return cls(
            f"stored state of {step} lacks sequence {sequence}; the checkpoint is damaged; restore the job folder from a copy"
        )


class JobError(HeadwaterError):
    """A job that cannot start or go on."""

    @classmethod
    def folder_in_use(cls, folder: str) -> JobError:
        return cls(f"job folder {folder} is in use by another process; stop that job first or use another job_dir")

    @classmethod
    def other_program(cls, folder: str, differences: list[str]) -> JobError:
        facts = "; ".join(differences)
        return cls(
            f"job folder {folder} was written by a program of another shape: {facts}; "
            f"run the old program, or start the new one in an empty job_dir"
        )

    @classmethod
    def finished(cls, folder: str, epoch: int) -> JobError:
        return cls(
            f"the job in {folder} reached the end of its input in epoch {epoch}, its watermark is at its maximum, and there is "
            f"new input; read it with a new job_dir"
        )

    @classmethod
    def corrupt(cls, path: str, problem: str) -> JobError:
        return cls(
            f"{path} cannot be read: {problem}; restore it from a copy of the job folder, or start in an empty job_dir"
        )

    @classmethod
    def engine_failed(cls, job: str, message: str) -> JobError:
        return cls(f"job {job!r} stopped: {message}")

    @classmethod
    def not_supported(cls, what: str, action: str) -> JobError:
        return cls(f"{what}; {action}")


class PublishError(HeadwaterError):
    """A committed epoch that could not be handed to a sink; it stays staged and is published at the next start."""

    @classmethod
    def failed(cls, sink: str, epoch: int, why: str) -> PublishError:
        return cls(
            f"sink {sink!r} could not publish epoch {epoch}: {why}; the epoch stays staged and nothing is lost: "
            f"mend the cause and start the job again"
        )

    @classmethod
    def sink_is_gone(cls, sink: str, epoch: int) -> PublishError:
        return cls(
            f"epoch {epoch} is committed and its rows for sink {sink!r} are not published, but the program has no such sink; "
            f"start the program that has it once, or remove its lines from the manifest in the outbox to give the rows up"
        )

    @classmethod
    def staged_file_missing(cls, sink: str, path: str) -> PublishError:
        return cls(f"sink {sink!r}: the staged file {path} is neither there nor published; it was removed from outside")

    @classmethod
    def folder_of_another_job(cls, sink: str, folder: str, owner: str, job_id: str) -> PublishError:
        return cls(
            f"sink {sink!r}: folder {folder} holds the output of another run ({owner}, this one is {job_id}); "
            f"use an empty folder, or start with the job_dir that wrote it"
        )


class SourceError(HeadwaterError):
    """A source that cannot be read."""

    @classmethod
    def schema_mismatch(cls, source: str, expected: str, found: str) -> SourceError:
        return cls(
            f"source {source} has the schema '{found}', the job declares '{expected}'; change the job's schema to fit"
        )

    @classmethod
    def bad_timestamp(cls, source: str, column: str, row: object) -> SourceError:
        return cls(
            f"source {source}: the event-time column {column!r} is null in {_short(row)}; filter such rows out before the log, "
            f"or take another column for the watermarks"
        )


def _short(value: object, limit: int = 200) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


class JavaMissing(HeadwaterError):
    """No Java on this machine can run Spark."""

    def __init__(self, message: str, found: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.found = found

    @classmethod
    def among(cls, found: list[str], oldest: int) -> JavaMissing:
        return cls(
            f"Spark needs Java {oldest} or newer; found {'; '.join(found) or 'none'}; "
            f"install one (Debian: sudo apt-get install openjdk-{oldest}-jre-headless) or set JAVA_HOME to its folder",
            tuple(found),
        )


# --- the event log ------------------------------------------------------------


class LogError(HeadwaterError):
    """The root of all errors of the embedded event log."""

    @classmethod
    def _with(cls, text: str, **facts: object) -> Self:
        error = cls(text)
        error.__dict__.update(facts)
        return error


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
    partition: int
    errno: int | None
    appended: dict[int, tuple[int, int]]
    """For an append by key: the partitions that took their rows before this one failed."""

    @classmethod
    def append(cls, topic: str, partition: int, cause: OSError) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} could not take the append and none of its rows were kept; {cause}; "
            f"free space on the disk or tighten the topic's retention, then append again",
            topic=topic,
            partition=partition,
            errno=cause.errno,
            appended={},
        )

    @classmethod
    def flush(cls, topic: str, partition: int, cause: OSError) -> Self:
        return cls._with(
            f"topic {topic!r} partition {partition} could not be flushed, so its last rows may not survive power loss; "
            f"{cause}; check the disk, then append these rows again",
            topic=topic,
            partition=partition,
            errno=cause.errno,
            appended={},
        )

    def after(self, appended: dict[int, tuple[int, int]]) -> Self:
        """Tell which partitions of an append by key are done."""
        self.appended = appended
        if appended:
            self.add_note(f"partitions {sorted(appended)} took their rows; append only the rest again")
        return self
